// JobTuner: tunes a training job, in the agent of rank 0's host. Reads the trace ring of rank 0,
// passes scores to a Tuner, and writes its choice into the page that the ranks share.
//
// One thread, that of the io_context. Each choice of the tuner takes about 1 ms.
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
#include "runtime/trace/ring_reader.h"
#include "runtime/trace/tick_clock.h"

namespace hvd {

struct TuningSettings {
  std::string log_file, report;  // files; empty: none
  bool memory = true;            // use results of earlier runs
  size_t warmup_windows = 3, steps = 5, most_windows = 40;
  std::vector<std::string> variables;  // of the workers, "NAME=value"
};
// Nothing if tuning is off. Files are relative to `directory`, that of the workers.
std::optional<TuningSettings> TuningSettingsOf(std::vector<std::string> variables,
                                               const std::string& directory);

class JobTuner {
 public:
  // `say` shows the user a sentence; `note` adds records to rank 0's timeline, with stamps of the
  // host's steady clock. Results are stored in `memory`.
  JobTuner(asio::io_context& io, TuningMemory memory, std::function<void(const std::string&)> say,
           std::function<void(std::span<const TraceRecord>)> note);

  // Writes the report of an unfinished search.
  ~JobTuner() { Rest(); }

  // Before the first generation.
  void Begin(TuningSettings settings);
  // A generation has begun on this host; `fd`: of its page; `local_rank`: of rank 0; `links`:
  // TuningCase::links.
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
  std::optional<ExchangeMeter> exchanges_;  // during the warm-up, if a model is possible
  std::vector<TrainingStep> modelled_;      // steps of the warm-up
  std::optional<StepModel> model_;          // between hosts
  int64_t switched_ns_ = 0;                 // steps that began earlier used other settings
  // Number of such steps in the window, which are not measured. One counts as a step; more of them
  // were too short to measure.
  size_t of_switch_ = 0;
  TunedWorld world_;
  std::string links_;
  bool recalled_ = false;         // the memory was queried, or is not used
  std::vector<TuningRow> rows_;   // of this generation, at most kMostRows
  std::string outcome_;           // of the last finished search
  size_t reported_ = 0;           // searches whose result was reported
  std::vector<TunePoint> found_;  // in earlier generations
  bool log_begun_ = false;
  std::vector<TraceRecord> records_;  // scratch
  std::vector<TrainingStep> steps_;   // scratch
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_TUNING_JOB_TUNER_H_
