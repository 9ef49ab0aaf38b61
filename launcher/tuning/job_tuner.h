// JobTuner: tunes the job of an agent, that of the host of rank 0, while it trains. It reads the
// trace ring of rank 0, gives scores to a Tuner, and writes its choice into the page that
// the ranks share. The ranks notice nothing but their settings.
//
// One thread, that of the io_context. A choice of the tuner takes it about a millisecond.
#ifndef HVD_LAUNCHER_TUNING_JOB_TUNER_H_
#define HVD_LAUNCHER_TUNING_JOB_TUNER_H_

#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "autotune/step_model.h"
#include "autotune/tuner.h"
#include "launcher/tuning/exchange_meter.h"
#include "launcher/tuning/step_meter.h"
#include "launcher/tuning/tuned_axes.h"
#include "launcher/tuning/tuning_log.h"
#include "launcher/tuning/tuning_memory.h"
#include "runtime/base/clock.h"
#include "runtime/segment/mapped_page.h"
#include "timeline/ring_reader.h"
#include "timeline/tick_clock.h"

namespace hvd {

struct TuningSettings {
  std::string log_file, report;  // files; empty: none
  bool memory = true;            // results of earlier runs count
  size_t warmup_windows = 3, steps = 5, most_windows = 40;
  std::vector<std::string> variables;  // of the workers, "NAME=value"
};
// Nothing where the job is not to be tuned. Files are relative to `directory`, that of the workers.
std::optional<TuningSettings> TuningSettingsOf(std::vector<std::string> variables,
                                               const std::string& directory);

class JobTuner {
 public:
  // `say` tells the user one sentence; `note` gives the timeline records of rank 0, with stamps of
  // the host's steady clock. Results are remembered in `memory`.
  JobTuner(asio::io_context& io, TuningMemory memory, std::function<void(const std::string&)> say,
           std::function<void(std::span<const TraceRecord>)> note);

  // Writes the report of a search that is not over.
  ~JobTuner() { Rest(); }

  // Before the first generation.
  void Begin(TuningSettings settings);
  // A generation has begun on this host, `fd` is that of its page; `local_rank`: of rank 0;
  // `links`: TuningCase::links.
  void UsePage(int fd, size_t bytes, const TunedWorld& world, uint32_t local_rank,
               std::string links);
  // Rank 0 is on another host.
  void Rest();

 private:
  void Tick();
  void Read();
  void Recall();
  void BeginModel();
  void EndModel();
  double PredictedMs(const TunePoint& point) const;
  TuningCase Case() const;
  void EndWindow();
  void StartWindow();
  void Tell(const TuningRow& row);
  void Log(const TuningRow& row);
  void BeginLog();
  void NoteLogged(const Status& written);
  void EndSearch();
  std::string Outcome(const TuningResult& result) const;
  void Remember(const TuningResult& result);
  void WriteReport();

  const TuningMemory memory_;
  const std::function<void(const std::string&)> say_;
  const std::function<void(std::span<const TraceRecord>)> note_;
  asio::steady_timer timer_;
  std::optional<TuningSettings> settings_;
  MappedPage page_;
  std::optional<RingReader> ring_;
  TickClock clock_;
  StepMeter meter_;
  std::vector<TuneAxis> axes_;
  std::optional<Tuner> tuner_;
  std::vector<TrainingStep> window_;
  std::optional<ExchangeMeter> exchanges_;  // during the warm-up, where a model can be made
  std::vector<TrainingStep> modelled_;      // steps of the warm-up
  std::optional<StepModel> model_;          // between hosts
  int64_t switched_ns_ = 0;  // a step that began before that began with other settings
  // Of the window: such steps are run like the others, but not measured. One counts as a step; more
  // were too short to be met.
  size_t of_switch_ = 0;
  TunedWorld world_;
  std::string links_;
  bool recalled_ = false;         // the memory was asked, or is not to be
  std::vector<TuningRow> rows_;   // of this generation, at most kMostRows
  std::string outcome_;           // of the last search that is over
  size_t told_ = 0;               // searches whose result was told
  std::vector<TunePoint> found_;  // in earlier generations
  bool log_begun_ = false;
  std::vector<TraceRecord> records_;  // scratch
  std::vector<TrainingStep> steps_;   // scratch
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_TUNING_JOB_TUNER_H_
