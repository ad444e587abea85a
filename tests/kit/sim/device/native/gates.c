#include "state.h"

#define OPENING_NS (17 * US) /* from the manager's writing the gate to the waiting launch's passing it */

static void fill_pages(void) {
    account();
    s.told_busy_ns[s.count] = s.busy_ns;
    for (int i = 0; i < s.count; i++) {
        struct client *c = &s.clients[i];
        s.told_busy_ns[i] = c->ran_ns;
        bool idle = !c->queued && c->host != AT_GATE;
        int64_t idle_ns = c->idle_ns + (idle ? s.now_ns - c->idle_from_ns : 0);
        s.pages[i] =
            (struct sim_page){c->reported_ns, c->reported_ns - c->drained_reported_ns, idle_ns, c->host == AT_GATE, c->queued};
        if (c->is.feigns) {
            s.pages[i].idle_ns = s.now_ns - c->reported_ns;
            s.pages[i].undrained_ns = 0;
        }
    }
}

void owe_release(struct client *c) {
    if (c->owes && !c->told_open && !c->queued && !c->submitting) {
        c->owes = false;
        at(s.now_ns + message_ns(), MESSAGE, (int)(c - s.clients), 0, SIM_RELEASE);
    }
}

/* Does with the gates what was decided. Closing is seen by the next launch, opening once the waiting one has woken. */
static void apply(void) {
    for (int i = 0; i < s.count; i++) {
        struct client *c = &s.clients[i];
        struct sim_gate *gate = &s.gates[i];
        if (gate->open && c->cap_ns != gate->cap_ns) {
            c->cap_ns = gate->cap_ns;
            await_room(c);
        }
        if (gate->open && !c->told_open) {
            c->told_open = true;
            c->owes = false;
            at(s.now_ns + (c->host == AT_GATE ? OPENING_NS : US), OPENED, i, ++c->gate_generation, 0);
        } else if (!gate->open && c->told_open) {
            c->told_open = c->open = c->requested = false;
            c->gate_generation++;
            c->owes = gate->tells || c->queued || c->submitting;
            owe_release(c);
            if (c->host == AT_GATE) {
                c->requested = true;
                at(s.now_ns + message_ns(), MESSAGE, i, c->gate_generation, SIM_REQUEST);
            }
        }
        c->owes = c->owes || (c->told_open && gate->tells);
    }
}

void tell(int kind, int program) {
    s.calls++;
    fill_pages();
    int64_t look_ns = s.decide(kind, program, s.now_ns);
    apply();
    at(most(look_ns, s.now_ns + US), LOOK, 0, ++s.look_generation, 0);
}

void give_back(struct client *c) {
    if (!c->told_open || c->queued || c->submitting || !c->owes)
        return;
    c->told_open = c->open = c->owes = false;
    c->gate_generation++;
    s.gates[c - s.clients].open = 0;
    at(s.now_ns + message_ns(), MESSAGE, (int)(c - s.clients), 0, SIM_RELEASE);
}
