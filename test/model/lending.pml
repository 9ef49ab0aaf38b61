/* Lanes and leases of a large allreduce, twice in a row in the same memory: every chunk is combined by exactly one member,
 * nobody is done before all chunks are, and no lease is used again while a member may still look at it. See
 * runtime/backends/shm/DESIGN.md.
 *
 * Three members, one lane with one chunk each. Member 0 lends the lanes, and lends them again for the second operation as
 * soon as it may (leave out the waiting and the checker finds who still looks). */
#ifndef WAIT_FOR_READERS
#define WAIT_FOR_READERS 1
#endif
#define MEMBERS 3
#define CHUNKS 1
#define ROUNDS 2

byte lent = 1;                          /* number of the operation whose lanes lie in the block now; 0: taken back */
byte claimed[MEMBERS], done[MEMBERS];   /* the lanes */
bool left[MEMBERS];
byte combined[3];                       /* how often each chunk was; MEMBERS * CHUNKS */

active [MEMBERS] proctype Member() {
  byte me = _pid, round = 1, step, lane, mine, sum;
  do
  :: round > ROUNDS -> break
  :: round <= ROUNDS ->
    lent == round;                                       /* the offers of all are here */
    do
    :: true ->
      step = 0;
      do                                                 /* Advance */
      :: step == MEMBERS -> break
      :: step < MEMBERS ->
        d_step { lane = (me + step) % MEMBERS; assert(lent == round) };
        if
        :: claimed[lane] < CHUNKS ->
          atomic { mine = claimed[lane]; claimed[lane]++ };
          if
          :: mine < CHUNKS ->
            d_step { combined[lane]++; assert(combined[lane] == 1 && lent == round) };
            done[me]++
          :: else -> step++
          fi
        :: else -> step++
        fi
      od;
      assert(lent == round);
      d_step { sum = done[0] + done[1] + done[2]; step = 0; lane = 0; mine = 0 };
      if
      :: sum == MEMBERS * CHUNKS -> break
      :: else -> skip
      fi
    od;
    sum = 0;
    assert(combined[0] == 1 && combined[1] == 1 && combined[2] == 1 && lent == round);
    left[me] = true;                                     /* Leave */
    if
    :: me == 0 ->                                        /* TakeBackWhenLeft, then the next operation */
      !WAIT_FOR_READERS || (left[1] && left[2]);
      lent = 0;
      d_step {
        claimed[0] = 0; claimed[1] = 0; claimed[2] = 0;
        done[0] = 0; done[1] = 0; done[2] = 0;
        left[0] = false; left[1] = false; left[2] = false;
        combined[0] = 0; combined[1] = 0; combined[2] = 0
      };
      lent = round + 1
    :: else -> skip
    fi;
    round++
  od
}
