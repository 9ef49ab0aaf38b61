/* The staging ring of an allreduce of private buffers: what a member reads of another is the chunk that it wants, from the
 * first byte to the last, whoever runs ahead; all come to their end, and leave where the world breaks. See
 * runtime/backends/shm/DESIGN.md.
 *
 * Of two, each combines every chunk for itself; of three (MEMBERS=3), each combines its slice and takes the others'. A member
 * takes any step that it may take, so that every order of StagingRing::Advance is among these: it may go aside at any time,
 * as one does whose look at the others is old. The words of a member are written by it only and grow, so that those read one
 * after the other promise no more than those read at once. Member 0 may die at any step (the agent breaks the page then). */
#ifndef MEMBERS
#define MEMBERS 2
#endif
#ifndef WAIT_FOR_TAKEN
#define WAIT_FOR_TAKEN 1
#endif
#ifndef KEEP_WITHIN_LEAD
#define KEEP_WITHIN_LEAD 1
#endif
#ifndef COPY_BEFORE_POST
#define COPY_BEFORE_POST 1
#endif
#ifndef WAIT_FOR_REDUCED
#define WAIT_FOR_REDUCED 1
#endif
#if MEMBERS == 3
#define SLICED true
#define ALL(word, than) (word[0] > than && word[1] > than && word[2] > than)
#define SLOTS 1
#define LEAD 2
#define CHUNKS 2
#else
#define SLICED false
#define ALL(word, than) (word[0] > than && word[1] > than)
#define SLOTS 2
#define LEAD 3
#define CHUNKS 5
#endif

byte posted[MEMBERS], reduced[MEMBERS], taken[MEMBERS]; /* RingWords */
bool aside[MEMBERS * LEAD];
byte input[MEMBERS * (SLOTS + CHUNKS)]; /* of a place: chunk + 1 whose input lies there as a whole; 0 while it is copied */
byte sum[MEMBERS * (SLOTS + CHUNKS)];   /* chunk + 1 of which the slice of the owner is combined there */
bool broken;                            /* the page */

/* Where a chunk lies: in a slot, or in the copy. */
#define PLACE(member, chunk, far) ((member) * (SLOTS + CHUNKS) + ((far) -> SLOTS + (chunk) : (chunk) % SLOTS))
#define SAYS_ASIDE(member, chunk) aside[(member) * LEAD + (chunk) % LEAD]
#define CHUNK_OF(member, chunk) PLACE(member, chunk, SAYS_ASIDE(member, chunk))
/* All have taken what chunk posted[me] overwrites: least taken + width > posted. */
#define LEADS_BY_LESS_THAN(width) (posted[me] < width || ALL(taken, posted[me] - width))
#if WAIT_FOR_TAKEN
#define HAS_SLOT LEADS_BY_LESS_THAN(SLOTS)
#else
#define HAS_SLOT (posted[me] < SLOTS || taken[me] > posted[me] - SLOTS)
#endif
#if KEEP_WITHIN_LEAD
#define MAY_GO_ASIDE LEADS_BY_LESS_THAN(LEAD)
#else
#define MAY_GO_ASIDE true
#endif
#if MEMBERS == 3 && WAIT_FOR_REDUCED
#define READY ALL(reduced, taken[me])
#elif MEMBERS == 3
#define READY (ALL(posted, taken[me]) && reduced[me] > taken[me])
#else
#define READY ALL(posted, taken[me])
#endif

#define LIES_THERE(member, chunk) ((SLICED -> sum[CHUNK_OF(member, chunk)] : input[CHUNK_OF(member, chunk)]) == (chunk) + 1)
/* One member of those that are read, whichever it is: what is true of any is true of all. */
#if MEMBERS == 3
#define ANY(p) if :: p = 0 :: p = 1 :: p = 2 fi
#else
#define ANY(p) p = 1 - me
#endif

active [MEMBERS] proctype Member() {
  byte me = _pid, p, at;
  bool far;
  do
  :: broken -> break
  :: taken[me] == CHUNKS -> break
  :: me == 0 && !broken && taken[me] < CHUNKS -> broken = true; break /* it dies */
  :: posted[me] < CHUNKS && (HAS_SLOT || MAY_GO_ASIDE) ->             /* PostOne */
    if
    :: HAS_SLOT -> far = false
    :: MAY_GO_ASIDE -> far = true
    fi;
    d_step { at = PLACE(me, posted[me], far); input[at] = 0; sum[at] = 0 };
    if
    :: COPY_BEFORE_POST ->
      input[at] = posted[me] + 1;
      SAYS_ASIDE(me, posted[me]) = far;
      d_step { posted[me]++; at = 0; far = false }
    :: else ->
      SAYS_ASIDE(me, posted[me]) = far;
      posted[me]++;
      d_step { input[at] = posted[me]; at = 0; far = false }
    fi
  :: SLICED && reduced[me] < CHUNKS && ALL(posted, reduced[me]) -> /* ReduceSlice */
    atomic { ANY(p); assert(input[CHUNK_OF(p, reduced[me])] == reduced[me] + 1) }; /* the first byte */
    assert(input[CHUNK_OF(p, reduced[me])] == reduced[me] + 1);                    /* the last */
    p = 0;
    sum[CHUNK_OF(me, reduced[me])] = reduced[me] + 1;
    reduced[me]++
  :: taken[me] < CHUNKS && READY ->                     /* Combine, TakeSlices */
    atomic { ANY(p); assert(LIES_THERE(p, taken[me])) };
    assert(LIES_THERE(p, taken[me]));
    p = 0;
    taken[me]++
  od;
  assert(broken || taken[me] == CHUNKS)
}
