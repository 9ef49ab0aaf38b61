/* Commits: all ranks act at the same commit, and none of them sleeps for ever. See Commits in SEGMENT.md.
 *
 * Two hosts of one rank each, their agents, and the driver. A plain store lies in the store buffer of its processor until the
 * processor writes it out, or orders it before a later load: that is what the sequentially consistent operations are for (leave
 * out either and the checker finds ranks that act at different commits). Ranks meet in a collective between commits, so that
 * a rank that waits at its commit must not be needed for the answer. */
#ifndef RANK_ORDERED
#define RANK_ORDERED 1
#endif
#ifndef AGENT_ORDERED
#define AGENT_ORDERED 1
#endif
#ifndef ABOVE
#define ABOVE 1                      /* act_at is this much above the largest count */
#endif
#define HOSTS 2
#define COMMITS 4

byte commits[HOSTS], act_at[HOSTS];  /* memory: the page of each host */
bool hold[HOSTS];
byte buffered_commits[HOSTS];        /* store buffer of the rank; 0: empty */
bool buffered_hold[HOSTS];           /* store buffer of the agent */
byte most[HOSTS];                    /* what the agent told the driver, plus 1; 0: nothing yet */
byte chosen;                         /* by the driver */
byte acted_at[HOSTS];
byte arrived[HOSTS];                 /* collectives that the rank has come to */

active [HOSTS] proctype RankBuffer() {
  byte me = _pid;
end:
  do
  :: atomic { buffered_commits[me] != 0 -> commits[me] = buffered_commits[me]; buffered_commits[me] = 0 }
  od
}
active [HOSTS] proctype AgentBuffer() {
  byte me = _pid - HOSTS;
end:
  do
  :: atomic { buffered_hold[me] -> hold[me] = true; buffered_hold[me] = false }
  od
}

active [HOSTS] proctype Rank() {
  byte me = _pid - 2 * HOSTS, n = 0;
  do
  :: n == COMMITS || acted_at[me] != 0 -> break
  :: else ->
    n++;
    arrived[me] = n;
    (arrived[0] >= n && arrived[1] >= n);                              /* a collective of both */
    atomic { buffered_commits[me] == 0 -> buffered_commits[me] = n };  /* commits + 1 */
    if
    :: RANK_ORDERED -> buffered_commits[me] == 0
    :: !RANK_ORDERED -> skip
    fi;
    if
    :: !hold[me] -> skip
    :: else ->
      act_at[me] != 0;                                                 /* sleeps until it is rung */
      if
      :: act_at[me] > n -> skip
      :: else -> acted_at[me] = n; assert(n == act_at[me])
      fi
    fi
  od
}

active [HOSTS] proctype Agent() {
  byte me = _pid - 3 * HOSTS;
  buffered_hold[me] = true;                                            /* HoldCommits */
  if
  :: AGENT_ORDERED -> !buffered_hold[me]
  :: !AGENT_ORDERED -> skip
  fi;
  most[me] = commits[me] + 1;                                          /* MostCommits */
  chosen != 0;
  act_at[me] = chosen                                                  /* ActAt */
}

active proctype Driver() {
  (most[0] != 0 && most[1] != 0);
  atomic {
    chosen = (most[0] > most[1] -> most[0] : most[1]) - 1 + ABOVE;
    if
    :: chosen == 0 -> chosen = COMMITS + 1                             /* only a wrong ABOVE comes here */
    :: else -> skip
    fi
  }
}

/* No rank has passed the commit that was chosen without acting. */
active proctype Monitor() {
end:
  atomic {
    (acted_at[0] != 0 && acted_at[1] == 0 && arrived[1] > acted_at[0] ||
     acted_at[1] != 0 && acted_at[0] == 0 && arrived[0] > acted_at[1]) -> assert(false)
  }
}
