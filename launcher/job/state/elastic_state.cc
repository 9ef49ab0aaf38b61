#include "launcher/job/state/elastic_state.h"

namespace hvd {

void ElasticState::Shift(Duration away) {
  ledger.Shift(away);
  budget.Shift(away);
  time.Shift(away);
  if (restart) restart->kill_at += away;
  started_at += away;
  next_report += away;
  for (std::optional<TimePoint>* time_point :
       {&incomplete_since, &resize_since, &resize_at, &ledger_changes_at, &stop_by, &enough_since,
        &growth_at, &next_overdue, &short_since, &late_since}) {
    if (*time_point) **time_point += away;
  }
}

}  // namespace hvd
