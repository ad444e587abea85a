#include "attacker.h"

#include <errno.h>
#include <linux/futex.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "vt.h"
#include "wire_checks.h"

/* A gate that dies between the look at it and the wait for it wakes nobody. */
#define LOOK_NS 10000000

enum { PAGES = 2 };

struct packet {
    uint8_t *bytes;
    size_t size;
};

struct connection {
    int fd;                          /* -1: none */
    const struct es_gate_page *gate; /* NULL: it was never welcomed */
    struct es_hint_page *hints;
    uint32_t number; /* of the grant that it waited for last */
};

struct attacker {
    int process;
    struct sockaddr_un address;
    struct packet packets[PACKETS];
    uint32_t packet_count;
    struct connection connections[CONNECTIONS];
    struct move *moves;
    uint32_t count, again;
    uint64_t delay_ns;
    struct attack outcome;
};

struct attacker *attacker_new(const char *name, const char *socket_path) {
    struct attacker *attacker = calloc(1, sizeof *attacker);
    if (attacker == NULL)
        return NULL;
    attacker->address.sun_family = AF_UNIX;
    snprintf(attacker->address.sun_path, sizeof attacker->address.sun_path, "%s", socket_path);
    for (uint32_t i = 0; i < CONNECTIONS; i++)
        attacker->connections[i].fd = -1;
    attacker->process = vt_process(name, NULL, 1);
    return attacker;
}

void attacker_packet(struct attacker *attacker, const void *bytes, size_t size) {
    struct packet *packet = &attacker->packets[attacker->packet_count++];
    *packet = (struct packet){malloc(size), size};
    memcpy(packet->bytes, bytes, size);
}

struct attack attacker_outcome(const struct attacker *attacker) { return attacker->outcome; }

/* Whether a call succeeded: the manager may go away whenever it likes, anything else is this program's fault. */
static bool succeeded(struct attacker *attacker, long result, const struct move *move) {
    if (result >= 0)
        return true;
    if (errno != EPIPE && errno != ECONNRESET && errno != ENOTCONN && attacker->outcome.error == 0) {
        attacker->outcome.error = errno;
        attacker->outcome.error_move = move->kind;
    }
    return false;
}

static void disconnect(struct connection *connection) {
    if (connection->gate != NULL)
        munmap((void *)connection->gate, ES_PAGE_BYTES);
    if (connection->hints != NULL)
        munmap(connection->hints, ES_PAGE_BYTES);
    if (connection->fd >= 0)
        close(connection->fd);
    *connection = (struct connection){.fd = -1};
}

static void connect_anew(struct attacker *attacker, struct connection *connection, const struct move *move) {
    const struct sockaddr *address = (const struct sockaddr *)&attacker->address;
    disconnect(connection);
    connection->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (succeeded(attacker, connect(connection->fd, address, sizeof attacker->address), move))
        attacker->outcome.connected++;
}

static void send_packet(struct attacker *attacker, struct connection *connection, const struct move *move) {
    const struct packet *packet = &attacker->packets[move->packet];
    uint32_t i = 0;
    while (i < move->count && succeeded(attacker, send(connection->fd, packet->bytes, packet->size, 0), move))
        i++;
    attacker->outcome.sent += i;
}

static uint32_t load_word(const struct connection *connection) {
    return __atomic_load_n(&connection->gate->word, __ATOMIC_ACQUIRE);
}

static void answer(struct attacker *attacker, struct connection *connection, const struct move *move) {
    const struct packet *packet = &attacker->packets[move->packet];
    struct es_header *header = (struct es_header *)packet->bytes;
    if (connection->gate == NULL)
        return;
    header->number = load_word(connection) >> ES_GATE_NUMBER_SHIFT;
    if (succeeded(attacker, send(connection->fd, packet->bytes, packet->size, 0), move))
        attacker->outcome.sent++;
}

static void map_pages(struct attacker *attacker, struct connection *connection, const int *fds, const struct move *move) {
    void *const gate = mmap(NULL, ES_PAGE_BYTES, PROT_READ, MAP_SHARED, fds[0], 0);
    void *const hints = mmap(NULL, ES_PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fds[1], 0);
    if (!succeeded(attacker, gate == MAP_FAILED || hints == MAP_FAILED ? -1 : 0, move))
        return;
    connection->gate = gate;
    connection->hints = hints;
}

static void receive(struct attacker *attacker, struct connection *connection, const struct move *move) {
    char bytes[ES_RECORD_BYTES_MAX];
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(PAGES * sizeof(int))];
    } control;
    struct iovec part = {bytes, sizeof bytes};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    const ssize_t size = recvmsg(connection->fd, &message, MSG_CMSG_CLOEXEC);
    const struct cmsghdr *passed;
    int fds[PAGES];
    if (!succeeded(attacker, size, move))
        return;
    passed = CMSG_FIRSTHDR(&message);
    if (passed == NULL || passed->cmsg_len != CMSG_LEN(sizeof fds))
        return;
    memcpy(fds, CMSG_DATA(passed), sizeof fds);
    map_pages(attacker, connection, fds, move);
    for (uint32_t i = 0; i < PAGES; i++)
        close(fds[i]);
}

/* Also where that was called back already. */
static bool granted(const struct connection *connection, uint32_t word) {
    return word >> ES_GATE_NUMBER_SHIFT != connection->number;
}

static bool revoked(const struct connection *connection, uint32_t word) {
    (void)connection;
    return (word & ES_GATE_HELD) == 0;
}

/* Waits until its gate's word is as wanted; whether it was before the gate was dead. */
static bool await(const struct connection *connection, bool (*wanted)(const struct connection *, uint32_t)) {
    const struct es_gate_page *gate = connection->gate;
    const struct timespec most = {.tv_nsec = LOOK_NS};
    while (gate != NULL && __atomic_load_n(&gate->epoch, __ATOMIC_ACQUIRE) != 0) {
        const uint32_t word = load_word(connection);
        if (wanted(connection, word))
            return true;
        (void)syscall(SYS_futex, &gate->word, FUTEX_WAIT, word, &most, NULL, 0);
    }
    return false;
}

static void make_move(struct attacker *attacker, const struct move *move) {
    struct connection *connection = &attacker->connections[move->connection];
    switch (move->kind) {
    case MOVE_CONNECT: connect_anew(attacker, connection, move); break;
    case MOVE_SEND: send_packet(attacker, connection, move); break;
    case MOVE_ANSWER: answer(attacker, connection, move); break;
    case MOVE_RECEIVE: receive(attacker, connection, move); break;
    case MOVE_AWAIT_GRANT:
        if (await(connection, granted)) {
            connection->number = load_word(connection) >> ES_GATE_NUMBER_SHIFT;
            attacker->outcome.granted++;
        }
        break;
    case MOVE_AWAIT_REVOKE: (void)await(connection, revoked); break;
    case MOVE_HINT:
        if (connection->hints != NULL)
            connection->hints->backlog_ns = connection->hints->ends_at_ns = move->amount;
        break;
    case MOVE_SHUT: (void)succeeded(attacker, shutdown(connection->fd, (int)move->amount), move); break;
    case MOVE_CLOSE: disconnect(connection); break;
    default: vt_sleep(move->amount); break;
    }
}

static void run_moves(void *argument) {
    struct attacker *attacker = argument;
    uint32_t at = 0;
    if (attacker->delay_ns > 0)
        vt_sleep(attacker->delay_ns);
    while (at < attacker->count) {
        make_move(attacker, &attacker->moves[at++]);
        if (at == attacker->count)
            at = attacker->again;
    }
}

void attacker_start(struct attacker *attacker, const struct move *moves, uint32_t count, uint32_t again, uint64_t delay_ns) {
    attacker->moves = calloc(count, sizeof *moves);
    memcpy(attacker->moves, moves, count * sizeof *moves);
    attacker->count = count;
    attacker->again = again;
    attacker->delay_ns = delay_ns;
    vt_spawn(attacker->process, "t0", run_moves, attacker);
}
