#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "launcher/tuning/tuned_axes.h"
#include "launcher/tuning/tuning_log.h"
#include "runtime/trace/rank_events.h"

namespace hvd {
namespace {

using testing::ElementsAre;

// As the timeline shows it.
std::vector<std::string> EventsOf(const std::vector<TraceRecord>& records) {
  std::vector<std::string> seen;
  TimelineSink sink;
  sink.event = [&seen](const TimelineEvent& event) {
    seen.push_back(std::to_string(event.ns) + " " + event.name + " {" + event.args + "}");
  };
  RankEvents(0).Add(records, 0, sink);
  return seen;
}

TEST(TrialRecordsTest, AWindowIsOneMarkWithItsChoiceAndItsScore) {
  const TuningRow row{TunePoint(kTunedAxes, 1.0), "candidate", 12.5, 5, 3.25};
  EXPECT_THAT(EventsOf(TrialRecords(row, "--chunk-kib 256 --wait-spins 1200", 77)),
              ElementsAre("77 TUNING_TRIAL {\"settings\":\"--chunk-kib 256 --wait-spins 1200\","
                          "\"kind\":\"candidate\",\"bytes_per_second\":12500000,\"steps\":5,"
                          "\"step_us\":3250}"));
}

TEST(TrialRecordsTest, AScoreThatIsNoneIsZero) {
  const TuningRow row{TunePoint(kTunedAxes, 1.0), "warm-up", -1, 0, -1};
  EXPECT_THAT(EventsOf(TrialRecords(row, "", 1)),
              ElementsAre("1 TUNING_TRIAL {\"settings\":\"\",\"kind\":\"warm-up\","
                          "\"bytes_per_second\":0,\"steps\":0,\"step_us\":0}"));
}

}  // namespace
}  // namespace hvd
