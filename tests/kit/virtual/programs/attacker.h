/* Hostile clients as data: a process without hook or driver that says to an allocation's socket what no good client
 * says, in a list of moves over packets that are made elsewhere. */
#ifndef ATTACKER_H
#define ATTACKER_H

#include <stddef.h>
#include <stdint.h>

/* What a move does, with its `connection` and, where it says so, with packet `packet`, or with `amount`. */
enum move_kind {
    MOVE_CONNECT = 1,  /* connects it anew, as soon as there is room for it */
    MOVE_SEND,         /* the packet, `count` times or until nobody takes it any more, each as soon as there is room */
    MOVE_ANSWER,       /* the packet once, with the number of the grant that its gate shows */
    MOVE_RECEIVE,      /* one packet, or the connection's end; maps the gate and the hints that come with it */
    MOVE_AWAIT_GRANT,  /* until its gate shows another grant than the last time, or is dead */
    MOVE_AWAIT_REVOKE, /* until it is closed, or dead */
    MOVE_HINT,         /* says in its hints that `amount` ns are queued, and done at that time */
    MOVE_SHUT,         /* one direction: `amount` as shutdown's */
    MOVE_CLOSE,
    MOVE_THINK, /* sleeps `amount` ns */
};

enum { CONNECTIONS = 512, PACKETS = 256, PACKET_BYTES = 4096 };

struct move {
    uint32_t kind, connection, packet, count;
    uint64_t amount;
};

/* What became of an attacker, for the judge. */
struct attack {
    uint64_t sent, connected, granted;
    int32_t error;       /* the first errno that was not a peer's being gone */
    uint32_t error_move; /* the kind of move that it came from */
};

struct attacker;

/* A process; the socket is that of its allocation. NULL where there is no memory. */
struct attacker *attacker_new(const char *name, const char *socket_path);
/* Its packets are numbered from 0 in the order in which they come. */
void attacker_packet(struct attacker *attacker, const void *bytes, size_t size);
/* After the last move it goes on at move `again`, or ends where that is `count`. */
void attacker_start(struct attacker *attacker, const struct move *moves, uint32_t count, uint32_t again, uint64_t delay_ns);
struct attack attacker_outcome(const struct attacker *attacker);

#endif
