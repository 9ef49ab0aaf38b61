#include "launcher/tuning/tuning_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

namespace hvd {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr TunedWorld kWorld{4, 4, 8};

struct Search {
  std::vector<TuneAxis> axes = TunedAxes(kWorld, {});
  Tuner tuner{*SearchSpace::Make(axes), {}};
  std::vector<TuningRow> rows;

  // Larger chunks are better.
  void Windows(int count) {
    for (int i = 0; i < count; ++i) {
      const Trial trial = tuner.trial();
      const double score = 100 + 10 * std::log(trial.point[kChunkKib]) + i % 2;
      rows.push_back({trial.point, NameOf(trial.kind), score, 5, 1.5});
      tuner.Record(score);
    }
  }
  nlohmann::json Report(const std::string& sentence) const {
    const std::string page = TuningPage(rows, axes, tuner, kWorld, sentence);
    const std::string begin = "id=\"report\">";
    const size_t at = page.find(begin) + begin.size();
    return nlohmann::json::parse(page.substr(at, page.find("</script>", at) - at));
  }
};

TEST(TuningPage, HasTheWindowsTheSlicesAndTheSurface) {
  Search search;
  search.Windows(30);
  const nlohmann::json report = search.Report("tuning found something");
  EXPECT_EQ(report["sentence"], "tuning found something");
  EXPECT_EQ(report["windows"].size(), 30U);
  EXPECT_EQ(report["windows"][0]["kind"], "default");
  ASSERT_EQ(report["axes"].size(), 2U);
  EXPECT_EQ(report["axes"][0]["flag"], "--chunk-kib");
  EXPECT_EQ(report["axes"][0]["slice"].front()["x"], 16);
  EXPECT_EQ(report["axes"][0]["slice"].back()["x"], 2048);
  EXPECT_GT(report["axes"][0]["slice"].back()["mean"], 1);
  EXPECT_EQ(report["surface"]["speed"].size(), report["surface"]["ys"].size());
  EXPECT_EQ(report["flags"], FlagsOf(search.tuner.result().point, search.axes));
}

TEST(TuningPage, IsWholeBeforeTheFirstWindow) {
  const nlohmann::json report = Search().Report("");
  EXPECT_EQ(report["windows"].size(), 0U);
  EXPECT_EQ(report["gained"], false);
}

TEST(TuningPage, TextsCannotEndTheScript) {
  Search search;
  EXPECT_EQ(search.Report("</script><b>")["sentence"], "</script><b>");
  EXPECT_THAT(TuningPage({}, search.axes, search.tuner, kWorld, "<b>"), Not(HasSubstr("<b>")));
}

}  // namespace
}  // namespace hvd
