/* The stream of an allgather, alltoall, broadcast or reducescatter: what a reader reads is the chunk that it wants, from the
 * first byte to the last, whoever runs ahead; the owner comes to its end without its readers; nothing is used again while one
 * may read it. See runtime/backends/shm/DESIGN.md.
 *
 * One owner, two readers, of which the second has a part that ends sooner. The owner takes any step that it may take: it may
 * go aside at any time, as one does whose look at the readers is old. Each word has one writer and only grows. The owner may
 * die at any step (the agent breaks the page then), and so may the first reader. */
#ifndef WAIT_FOR_ALL
#define WAIT_FOR_ALL 1
#endif
#ifndef COPY_BEFORE_POST
#define COPY_BEFORE_POST 1
#endif
#ifndef SAY_WHERE_BEFORE_POST
#define SAY_WHERE_BEFORE_POST 1
#endif
#ifndef KEEP_USED_COPY
#define KEEP_USED_COPY 1
#endif
#ifndef WAIT_FOR_RELEASE
#define WAIT_FOR_RELEASE 1
#endif
#define SLOTS 2
#define CHUNKS 5
#define READERS 2
#define ALL 100
#define REUSED 99

byte posted, in_slot[SLOTS];           /* StreamWords; in_slot counts from 1 */
byte taken[READERS];                   /* StreamReaderWord */
bool released[READERS];                /* release flags */
byte slot[SLOTS], copy[CHUNKS];        /* chunk + 1 that lies there as a whole; 0 while it is copied */
bool broken;                           /* the page */

#if WAIT_FOR_ALL
#define HAS_SLOT (posted < taken[0] + SLOTS && posted < taken[1] + SLOTS)
#else
#define HAS_SLOT (posted < taken[0] + SLOTS)
#endif
#define WANTED(reader) (CHUNKS - 2 * (reader))

active proctype Owner() {
  byte s, c;
  bool went_aside;
  do
  :: broken -> break
  :: !broken -> broken = true; break /* it dies */
  :: posted < CHUNKS ->
    s = posted % SLOTS;
    if
    :: HAS_SLOT -> /* Post */
      slot[s] = 0;
      if
      :: COPY_BEFORE_POST && SAY_WHERE_BEFORE_POST ->
        slot[s] = posted + 1;
        in_slot[s] = posted + 1;
        posted++
      :: !COPY_BEFORE_POST -> in_slot[s] = posted + 1; posted++; slot[s] = posted
      :: !SAY_WHERE_BEFORE_POST -> slot[s] = posted + 1; posted++; in_slot[s] = posted
      fi
    :: went_aside = true; copy[posted] = 0; copy[posted] = posted + 1; posted++ /* PostAside */
    fi
  :: posted == CHUNKS -> /* its output is complete, and the input may change */
    if
    :: (!went_aside || !KEEP_USED_COPY) ->
      d_step { c = 0; do :: c < CHUNKS -> copy[c] = REUSED; c++ :: else -> break od } /* FreeCopy */
    :: else
    fi;
    if
    :: broken
    :: (released[0] && released[1]) || !WAIT_FOR_RELEASE -> /* ReclaimWhenReleased */
      d_step {
        c = 0;
        do :: c < CHUNKS -> copy[c] = REUSED; c++ :: else -> break od;
        slot[0] = REUSED;
        slot[1] = REUSED
      }
    fi;
    break
  od
}

#define LIES_THERE ((near -> slot[n % SLOTS] : copy[n]) == n + 1)

active [READERS] proctype Reader() {
  byte me = _pid - 1, n;
  bool near;
  do
  :: broken -> break
  :: me == 0 && !broken -> broken = true; break /* it dies */
  :: n < WANTED(me) && posted > n ->
    near = in_slot[n % SLOTS] == n + 1;
    assert(LIES_THERE); /* the first byte */
    assert(LIES_THERE); /* the last */
    n++;
    if
    :: n == WANTED(me) -> taken[me] = ALL
    :: else -> taken[me] = n
    fi
  :: n == WANTED(me) -> released[me] = true; break
  od
}
