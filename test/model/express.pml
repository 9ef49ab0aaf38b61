/* Two paths through one stream: each rank takes the fast path (runtime/core/express.h) or the normal one in each round, by
 * itself, and may leave the fast path for the normal one while it waits. See "The fast path" in
 * runtime/core/AGREEMENT.md.
 *
 * Ranks submit two names in an order of their own: A and B in each of ROUNDS rounds, the second before the first is over
 * where it takes the normal path. A record is a name and the round that it is for; the model's receivers do not know the
 * round and must find it right. */
#ifndef RANKS
#define RANKS 2
#endif
#ifndef ROUNDS
#define ROUNDS 2
#endif
#ifndef LOOK_AT_THE_NAME
#define LOOK_AT_THE_NAME 1   /* 0: any record of a peer counts as its announcement of this name */
#endif
#ifndef LEAVE_THEM_THERE
#define LEAVE_THEM_THERE 1   /* 0: the fast path consumes what it has seen, and then forgets it when it is left */
#endif
#ifndef ONLY_FRESH
#define ONLY_FRESH 1         /* 0: the fast path is also taken where the normal one has received a part of the round */
#endif
#ifndef SETTLE
#define SETTLE 1             /* 0: a second operation begins while a round is open on the fast path */
#endif
#define A 0
#define B 1
#define PER_RANK (2 * ROUNDS)

byte record_name[RANKS * PER_RANK];   /* the stream of each rank */
byte record_round[RANKS * PER_RANK];
byte written[RANKS];

#define AT(rank, position) ((rank) * PER_RANK + (position))

inline announce(name) {
  atomic {
    record_name[AT(me, written[me])] = name;
    record_round[AT(me, written[me])] = round[name];
    written[me]++
  }
}

/* Inbox: enters the next record of a peer unless the round before is not over here. */
#define CAN_ENTER(peer) (head[peer] < written[peer] && !here[2 * (peer) + record_name[AT(peer, head[peer])]])

inline receive(peer) {
  atomic {
    if
    :: CAN_ENTER(peer) ->
      n = record_name[AT(peer, head[peer])];
      here[2 * peer + n] = 1;
      entered[2 * peer + n] = record_round[AT(peer, head[peer])];
      head[peer]++;
      n = 0
    :: else
    fi
  }
}

#if RANKS > 2
#define ALL_OTHERS_HERE(name) \
  ((me == 0 || here[name]) && (me == 1 || here[2 + (name)]) && (me == 2 || here[4 + (name)]))
#define ANY_HERE(name) (here[name] || here[2 + (name)] || here[4 + (name)])
#define RIGHT_ROUND(name) \
  ((me == 0 || entered[name] == round[name]) && (me == 1 || entered[2 + (name)] == round[name]) && \
   (me == 2 || entered[4 + (name)] == round[name]))
#define CLEAR(name) here[name] = 0; here[2 + (name)] = 0; here[4 + (name)] = 0
#else
#define ALL_OTHERS_HERE(name) ((me == 0 || here[name]) && (me == 1 || here[2 + (name)]))
#define ANY_HERE(name) (here[name] || here[2 + (name)])
#define RIGHT_ROUND(name) ((me == 0 || entered[name] == round[name]) && (me == 1 || entered[2 + (name)] == round[name]))
#define CLEAR(name) here[name] = 0; here[2 + (name)] = 0
#endif

/* Rounds::Ready and Start: every member has announced the round. */
inline start_if_ready(name) {
  atomic {
    if
    :: pending[name] && ALL_OTHERS_HERE(name) ->
      assert(RIGHT_ROUND(name));
      CLEAR(name);
      pending[name] = 0;
      round[name]++
    :: else
    fi
  }
}

proctype Rank(byte me) {
  byte head[RANKS], round[2], n, peer, first, seen;
  bool here[2 * RANKS], pending[2];
  byte entered[2 * RANKS];
  byte left[2];
  left[A] = ROUNDS;
  left[B] = ROUNDS;
  do
  :: left[A] == 0 && left[B] == 0 && !pending[A] && !pending[B] -> break

  /* The normal path: submit, and wait later. */
  :: left[A] > 0 && !pending[A] -> left[A]--; pending[A] = 1; announce(A); start_if_ready(A)
  :: left[B] > 0 && !pending[B] -> left[B]--; pending[B] = 1; announce(B); start_if_ready(B)

  /* A turn of any wait, and of the runtime thread. */
  :: atomic { (pending[A] || pending[B]) && me != 0 && CAN_ENTER(0) -> peer = 0 };
     receive(peer); start_if_ready(A); start_if_ready(B)
  :: atomic { (pending[A] || pending[B]) && me != 1 && CAN_ENTER(1) -> peer = 1 };
     receive(peer); start_if_ready(A); start_if_ready(B)
#if RANKS > 2
  :: atomic { (pending[A] || pending[B]) && me != 2 && CAN_ENTER(2) -> peer = 2 };
     receive(peer); start_if_ready(A); start_if_ready(B)
#endif

  /* The fast path with A. Whatever else the rank has in flight waits in the tables meanwhile. */
  :: left[A] > 0 && !pending[A] && (!ONLY_FRESH || !ANY_HERE(A)) ->
     left[A]--;
     announce(A);
     first = 0;
     do
     :: first == RANKS ->                    /* all have come: combined where they lie, then consumed */
       atomic {
         peer = 0;
         do
         :: peer == RANKS -> break
         :: peer == me -> peer++
         :: peer != me && peer < RANKS ->
            if
            :: LEAVE_THEM_THERE -> assert(record_round[AT(peer, head[peer])] == round[A] &&
                                          record_name[AT(peer, head[peer])] == A); head[peer]++
            :: else
            fi;
            peer++
         od;
         peer = 0;
         round[A]++
       };
       break
     :: first < RANKS && first == me -> first++
     :: first < RANKS && first != me && head[first] < written[first] ->
       if
       :: !LOOK_AT_THE_NAME || record_name[AT(first, head[first])] == A ->
          if
          :: LEAVE_THEM_THERE
          :: else -> head[first]++
          fi;
          first++
       :: else -> pending[A] = 1; break      /* something else comes first: Leave */
       fi
     :: first < RANKS && first != me -> pending[A] = 1; break  /* waited long enough, or another thread comes: Leave */
     :: !SETTLE && first < RANKS && first != me && left[B] > 0 && !pending[B] ->
        left[B]--; pending[B] = 1; announce(B);
        peer = first; receive(peer)
     od
  od
}

init {
  atomic {
    run Rank(0);
    run Rank(1);
#if RANKS > 2
    run Rank(2);
#endif
  }
}
