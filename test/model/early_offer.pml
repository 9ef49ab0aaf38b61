/* Early offers between two hosts: see runtime/backends/hosts/coordination/early_offer.h. Whatever fails, leaves or comes too
 * late, both hosts end each round of a sum alike, none waits for ever, and no round is settled by the offer of another.
 *
 * One name, ROUNDS rounds. The coordinator is in the process of the first leader. The second leader has a connection to it, and
 * so has a neighbour on its host, a member that may leave at any time, and may be the first to say that the leader leaves.
 * Messages carry the round that they are for; the model's processes do not look at it and must find it right. */
#ifndef ROUNDS
#define ROUNDS 2
#endif
#ifndef BOUND_BY_OFFER
#define BOUND_BY_OFFER 1     /* 0: an operation fails at once though it was offered early */
#endif
#ifndef DROP_WHAT_DOES_NOT_FIT
#define DROP_WHAT_DOES_NOT_FIT 1 /* 0: an early offer stays though the report behind it offers nothing */
#endif
#ifndef SETTLE_AFTER_A_LEAVE
#define SETTLE_AFTER_A_LEAVE 1   /* 0: a report that settles is refused because a member has left since */
#endif
#ifndef RECALL_BEFORE_CLOSE
#define RECALL_BEFORE_CLOSE 1    /* 0: the coordinator leaves without its offer */
#endif

#define PENDING 0            /* outcomes of a round */
#define SUMS 1
#define EXCHANGE 2
#define FAILED 3

mtype = { REPORT, WITHDRAW, RECALLED, LEAVE, EARLY, RECALL, ANSWER, END, ABORT, OTHER_LEFT, LEADER_LEFT };

chan to_coordinator = [4] of { mtype, byte, bool };  /* of the leader: kind, round, offers a part */
chan from_neighbour = [2] of { mtype };
chan to_leader = [8] of { mtype, byte, byte };       /* kind, round, outcome */

byte first[ROUNDS + 1], second[ROUNDS + 1];          /* outcomes at the two leaders */
byte first_round, second_round;                      /* the last that was submitted */
bool closed, leader_leaves;

/* ---- the coordinator and the first leader */

bool failed[ROUNDS + 1], offered[ROUNDS + 1];
byte reported;               /* rounds that the second host has reported */
bool early, recalled;        /* Coordinator::early_ */
byte early_round;
bool member_left, known_left, farewell;

inline say(kind, round, outcome) {
  assert(!farewell);
  to_leader!kind(round, outcome)
}

inline recall() {            /* Recall */
  if
  :: !recalled -> recalled = true; say(RECALL, early_round, 0)
  :: else
  fi
}

inline give_back() {         /* GiveBackEarly */
  early = false;
  if
  :: recalled -> assert(first[early_round] == PENDING); first[early_round] = FAILED; failed[early_round] = true; recalled = false
  :: else
  fi
}

inline fail_pending() {      /* a member has left: what waits for the other host, either way */
  if
  :: first_round > 0 && first[first_round] == PENDING && early && BOUND_BY_OFFER -> recall()
  :: first_round > 0 && first[first_round] == PENDING && !(early && BOUND_BY_OFFER) -> first[first_round] = FAILED
  :: else
  fi;
  if
  :: reported > first_round && !failed[reported] && !known_left -> say(END, reported, FAILED)
  :: else
  fi
}

inline on_report(round, offers) {
  if
  :: early && (SETTLE_AFTER_A_LEAVE || !member_left) ->      /* SettleEarly */
    assert(round == early_round && first[round] == PENDING);
    if
    :: offers -> early = false; recalled = false; reported = round; first[round] = SUMS; goto serve
    :: else -> give_back()
    fi
  :: else
  fi;
  if
  :: member_left && !known_left -> say(END, round, FAILED)
  :: member_left && known_left
  :: else ->
    assert(round == reported + 1);
    reported = round;
    if
    :: failed[round] -> say(END, round, FAILED)
    :: !failed[round] && first_round >= round -> first[round] = EXCHANGE; say(ANSWER, round, EXCHANGE)
    :: else -> offered[round] = offers
    fi
  fi
}

active proctype Coordinator() {
  byte round;
  bool offers, withdrew;
serve:
end:
  do
  :: atomic { !closed && first_round < ROUNDS && (first_round == 0 || first[first_round] != PENDING) ->
      first_round++;
      withdrew = false;
      if
      :: offers = true
      :: offers = false
      fi;
      if
      :: member_left || failed[first_round] -> first[first_round] = FAILED
      :: !member_left && !failed[first_round] && reported >= first_round ->
        if
        :: offers && offered[first_round] -> first[first_round] = SUMS
        :: else -> first[first_round] = EXCHANGE
        fi;
        if
        :: !known_left -> say(ANSWER, first_round, first[first_round])
        :: else
        fi
      :: else ->                                             /* OfferEarly */
        if
        :: offers && !early && reported == first_round - 1 ->
          early = true;
          early_round = first_round;
          say(EARLY, first_round, 0)
        :: else
        fi
      fi
    }
  :: atomic { !closed && first_round > 0 && first[first_round] == PENDING && !withdrew ->
      withdrew = true;                                       /* OnWithdraw */
      if
      :: early && BOUND_BY_OFFER -> recall()
      :: else -> failed[first_round] = true; first[first_round] = FAILED
      fi
    }
  :: atomic { to_coordinator?REPORT(round, offers) -> on_report(round, offers) }
  :: atomic { to_coordinator?WITHDRAW(round, offers) ->
      if
      :: !member_left && reported == round && first_round < round && !failed[round] ->
        failed[round] = true;
        say(END, round, FAILED)
      :: else
      fi
    }
  :: atomic { to_coordinator?RECALLED(round, offers) ->
      if
      :: early && recalled && early_round == round -> give_back()
      :: else
      fi
    }
  :: atomic { to_coordinator?LEAVE(round, offers) ->         /* OnLeave, of the leader itself */
      if
      :: early -> give_back()
      :: else
      fi;
      known_left = true;
      if
      :: !member_left -> member_left = true; fail_pending()
      :: member_left && first_round > 0 && first[first_round] == PENDING -> first[first_round] = FAILED
      :: else
      fi;
      say(ABORT, 0, 0);
      farewell = true
    }
  :: atomic { from_neighbour?OTHER_LEFT -> if :: !member_left -> member_left = true; fail_pending() :: else fi }
  :: atomic { from_neighbour?LEADER_LEFT ->
      if
      :: !farewell -> known_left = true; if :: !member_left -> member_left = true; fail_pending() :: else fi
      :: else
      fi
    }
  :: atomic { !closed && first_round > 0 ->                  /* SendGoodbye, CloseCoordinator */
      closed = true;
      if
      :: early && RECALL_BEFORE_CLOSE -> recall()
      :: else
      fi
    }
  :: atomic { closed && !(early && RECALL_BEFORE_CLOSE) ->
      if
      :: first[first_round] == PENDING -> first[first_round] = FAILED
      :: else
      fi;
      if
      :: !farewell -> say(ABORT, 0, 0)
      :: else
      fi;
      break
    }
  od;
end_gone:
  do
  :: to_coordinator?_(_, _)
  :: from_neighbour?_
  od
}

/* ---- the second leader */

active proctype Leader() {
  byte round, held, outcome;   /* held: Negotiator::early_ */
  bool offers, withdrew, over;
end:
  do
  :: atomic { !over && !leader_leaves && second_round < ROUNDS && (second_round == 0 || second[second_round] != PENDING) ->
      second_round++;
      withdrew = false;
      if
      :: offers = true
      :: offers = false
      fi;
      to_coordinator!REPORT(second_round, offers);           /* Report, then UseEarly */
      if
      :: held != 0 && offers -> assert(held == second_round); second[second_round] = SUMS; held = 0
      :: held != 0 && !offers && DROP_WHAT_DOES_NOT_FIT -> held = 0
      :: else
      fi
    }
  :: atomic { to_leader?EARLY(round, outcome) ->
      assert(held == 0);
      if
      :: second_round > 0 && second[second_round] == PENDING && offers ->
        assert(round == second_round);
        second[second_round] = SUMS
      :: second_round > 0 && second[second_round] == PENDING && !offers && DROP_WHAT_DOES_NOT_FIT
      :: else -> held = round
      fi
    }
  :: atomic { to_leader?RECALL(round, outcome) ->
      if
      :: held == round -> held = 0
      :: else
      fi;
      if
      :: !over -> to_coordinator!RECALLED(round, false)
      :: else
      fi
    }
  :: atomic { to_leader?ANSWER(round, outcome) ->
      assert(round == second_round && second[round] == PENDING);
      second[round] = outcome
    }
  :: atomic { to_leader?END(round, outcome) ->
      if
      :: second[round] == PENDING -> second[round] = FAILED
      :: else
      fi
    }
  :: atomic { to_leader?ABORT(round, outcome) ->
      over = true;
      if
      :: second_round > 0 && second[second_round] == PENDING -> second[second_round] = FAILED
      :: else
      fi
    }
  :: atomic { !over && !leader_leaves && second_round > 0 && second[second_round] == PENDING && !withdrew ->
      withdrew = true;
      to_coordinator!WITHDRAW(second_round, false)
    }
  :: atomic { !over && !leader_leaves && second_round > 0 -> leader_leaves = true; to_coordinator!LEAVE(0, false) }
  od
}

active proctype Neighbour() {
end:
  if
  :: second_round > 0 -> from_neighbour!OTHER_LEFT
  :: leader_leaves -> from_neighbour!LEADER_LEFT
  fi
}

/* Nothing can go on any more. */
active proctype End() {
  byte round;
end:
  timeout ->
  d_step {
    round = 1;
    do
    :: round <= ROUNDS ->
      assert(round > first_round || first[round] != PENDING || (round > second_round && !leader_leaves));
      assert(round > second_round || second[round] != PENDING);
      assert((first[round] == SUMS) == (second[round] == SUMS));
      assert((first[round] == EXCHANGE) == (second[round] == EXCHANGE));
      round++
    :: else -> break
    od
  }
}
