#include "launcher/tuning/job_tuner.h"

#include <chrono>
#include <utility>

#include "launcher/tuning/tuning_log.h"
#include "launcher/tuning/tuning_report.h"
#include "runtime/base/log.h"
#include "runtime/base/output_file.h"
#include "runtime/base/text/format.h"
#include "runtime/base/text/number_text.h"
#include "runtime/base/text/path_text.h"

namespace hvd {
namespace {

constexpr auto kTrialPoll = std::chrono::milliseconds(20);
constexpr size_t kMostRecords = 8192;
// A shorter window would measure the resolution of the clock.
constexpr int64_t kShortestWindowNs = 50'000'000;
constexpr size_t kMostRows = 5000;  // of the report
constexpr double kMb = 1 << 20;

size_t NumberOr(std::string_view text, size_t otherwise) {
  return ParseWhole<size_t>(text).value_or(otherwise);
}

std::string FileOf(const std::string& directory, std::string_view path) {
  return path.empty() ? "" : PathIn(directory, path);
}

std::string PercentText(double part) { return Format("{:.1f} %", 100 * part); }

int64_t Total(const std::vector<TrainingStep>& steps) {
  int64_t total = 0;
  for (const TrainingStep& step : steps) total += step.duration_ns;
  return total;
}

}  // namespace

std::optional<TuningSettings> TuningSettingsOf(std::vector<std::string> variables,
                                               const std::string& directory) {
  if (ValueOf("HOROVOD_AUTOTUNE", variables) != "1") return std::nullopt;
  TuningSettings settings;
  settings.log_file = FileOf(directory, ValueOf("HOROVOD_AUTOTUNE_LOG", variables));
  settings.report = FileOf(directory, ValueOf("HVD_AUTOTUNE_REPORT", variables));
  settings.memory = ValueOf("HVD_AUTOTUNE_MEMORY", variables) != "0";
  settings.warmup_windows =
      NumberOr(ValueOf("HOROVOD_AUTOTUNE_WARMUP_SAMPLES", variables), settings.warmup_windows);
  settings.steps =
      NumberOr(ValueOf("HOROVOD_AUTOTUNE_STEPS_PER_SAMPLE", variables), settings.steps);
  settings.most_windows =
      NumberOr(ValueOf("HOROVOD_AUTOTUNE_BAYES_OPT_MAX_SAMPLES", variables), settings.most_windows);
  settings.variables = std::move(variables);
  return settings;
}

JobTuner::JobTuner(asio::io_context& io, TuningMemory memory,
                   std::function<void(const std::string&)> say,
                   std::function<void(std::span<const TraceRecord>)> note)
    : memory_(std::move(memory)), say_(std::move(say)), note_(std::move(note)), timer_(io) {}

void JobTuner::Begin(TuningSettings settings) {
  if (settings_) return;
  settings_ = std::move(settings);
  clock_.Add(ReadTickPair());
  Tick();
}

void JobTuner::UsePage(int fd, size_t bytes, const TunedWorld& world, uint32_t local_rank,
                       std::string links) {
  if (!settings_) return;
  BeginLog();
  Rest();
  Result<MappedPage> page = MapPage(fd, bytes);
  if (!page.ok()) return LogWarning("the job is not tuned: " + page.status().message());
  axes_ = TunedAxes(world, settings_->variables);
  Result<SearchSpace> space = SearchSpace::Make(axes_);
  if (!space.ok()) return LogWarning("the job is not tuned: " + space.status().message());
  if (space->dimensions() == 0) {
    return say_(world.size < 2 ? "nothing is tuned: a world of one rank exchanges nothing"
                               : "nothing is tuned: all settings that have an effect were given");
  }
  page_ = std::move(*page);
  ring_.emplace(page_.page.trace(local_rank));
  tuner_.emplace(*space, TunerOptions{.warmup_windows = settings_->warmup_windows,
                                      .most_windows = settings_->most_windows,
                                      .promising = found_});
  world_ = world;
  links_ = std::move(links);
  BeginModel();
  recalled_ = !settings_->memory;
  reported_ = 0;
  StartWindow();
}

void JobTuner::Rest() {
  if (tuner_ && tuner_->result().gained) found_.assign(1, tuner_->result().point);
  if (tuner_ && !tuner_->settled()) WriteReport();
  rows_.clear();
  outcome_.clear();
  if (exchanges_) ring_->WantNoMore(kTraceForTuner);
  exchanges_.reset();
  modelled_.clear();
  model_.reset();
  tuner_.reset();
  ring_.reset();
  page_ = MappedPage();
  meter_ = StepMeter();
  window_.clear();
}

void JobTuner::Tick() {
  clock_.Add(ReadTickPair());
  if (tuner_) Read();
  timer_.expires_after(kTrialPoll);
  timer_.async_wait([this](const asio::error_code& error) {
    if (!error) Tick();
  });
}

void JobTuner::Read() {
  records_.clear();
  const bool lost = ring_->Read(&records_, kMostRecords) > 0;
  StampInSteadyNs(records_, ring_->clock(), clock_);
  if (lost) meter_.Skip();
  if (lost && exchanges_) exchanges_->Skip();
  if (exchanges_) exchanges_->Add(records_);
  steps_.clear();
  meter_.Add(records_, &steps_);
  if (exchanges_ && exchanges_->full()) EndModel();
  if (!recalled_ && meter_.signature() != 0) Recall();
  for (const TrainingStep& step : steps_) {
    if (step.begun_ns < switched_ns_) {
      of_switch_ = 1;
      continue;
    }
    window_.push_back(step);
    const bool steps_are_run = window_.size() + of_switch_ >= settings_->steps;
    if (steps_are_run && Total(window_) >= kShortestWindowNs) EndWindow();
  }
}

// An earlier result is used only while the search has hardly begun; it is verified first.
void JobTuner::Recall() {
  recalled_ = true;
  if (tuner_->settled()) return;
  const Result<std::optional<RememberedTuning>> known = memory_.Find(Case());
  if (!known.ok()) return say_("tuning starts anew: " + known.status().message());
  if (!*known) return;
  const TunePoint point = PointOf(**known, axes_);
  tuner_->Verify(point);
  say_("tuning starts from " + FlagsOf(point, axes_) + ", which an earlier run found");
}

TuningCase JobTuner::Case() const {
  return {world_,      ProcessorModel(),   GivenFlags(settings_->variables),
          HVD_VERSION, meter_.signature(), links_};
}

// If the effect of a setting can be predicted, rank 0 records every event until the search begins:
// they show the cost of an exchange, and when tensors are ready.
void JobTuner::BeginModel() {
  if (axes_[kFusionMb].pinned || settings_->warmup_windows == 0) return;
  exchanges_.emplace();
  ring_->Want(kTraceForTuner);
}

// The tuner models the difference between the job and the prediction; without a prediction, all of
// it.
void JobTuner::EndModel() {
  ring_->WantNoMore(kTraceForTuner);
  const double fusion_bytes = axes_[kFusionMb].initial * kMb;
  Result<StepModel> model = exchanges_->Model(modelled_, fusion_bytes);
  exchanges_.reset();
  modelled_.clear();
  if (!model.ok()) return LogInfo("tuning predicts nothing: " + model.status().message());
  model_ = *model;
  tuner_->Predict([model = *model](const TunePoint& point) {
    return 1 / model.StepUs(point[kFusionMb] * kMb);
  });
}

double JobTuner::PredictedMs(const TunePoint& point) const {
  return model_ ? model_->StepUs(point[kFusionMb] * kMb) / 1e3 : 0;
}

void JobTuner::EndWindow() {
  const Trial trial = tuner_->trial();
  const double score = ScoreOf(window_);
  const double step_ms = static_cast<double>(Total(window_)) / 1e6 / double(window_.size());
  Tell({trial.point, NameOf(trial.kind), score, window_.size(), step_ms, PredictedMs(trial.point)});
  tuner_->Record(score);
  if (exchanges_) modelled_.insert(modelled_.end(), window_.begin(), window_.end());
  if (exchanges_ && tuner_->trial().kind != Trial::Kind::kWarmup) EndModel();
  if (tuner_->settled() && reported_ < tuner_->searches()) EndSearch();
  if (tuner_->trial().point != trial.point) return StartWindow();
  window_.clear();
  of_switch_ = 0;
}

void JobTuner::StartWindow() {
  Apply(tuner_->trial().point, axes_, &page_.page.header().tuned);
  window_.clear();
  of_switch_ = 0;
  switched_ns_ = ReadTickPair().steady_ns;
}

void JobTuner::Tell(const TuningRow& row) {
  note_(TrialRecords(row, FlagsOf(row.point, axes_), ReadTickPair().steady_ns));
  Log(row);
}

void JobTuner::Log(const TuningRow& row) {
  if (rows_.size() < kMostRows) rows_.push_back(row);
  if (!settings_->log_file.empty()) NoteLogged(AppendText(settings_->log_file, TextOf(row)));
}

// Immediately, so that a job that is too short for a window leaves a file, too.
void JobTuner::BeginLog() {
  if (settings_->log_file.empty() || std::exchange(log_begun_, true)) return;
  NoteLogged(BeginTuningLog(settings_->log_file, TuningHeader()));
}

void JobTuner::NoteLogged(const Status& written) {
  if (written.ok()) return;
  say_(written.message() + "; tuning goes on without it");
  settings_->log_file.clear();
}

void JobTuner::EndSearch() {
  reported_ = tuner_->searches();
  const TuningResult result = tuner_->result();
  outcome_ = Outcome(result);
  say_(outcome_);
  Remember(result);
  WriteReport();
}

std::string JobTuner::Outcome(const TuningResult& result) const {
  const std::string windows = Format("{} windows", result.windows);
  if (!result.gained || result.gain_low <= 0) {
    return "tuning found no measurable gain in " + windows + " (" + std::string(result.why_over) +
           "); in use: " + FlagsOf(result.point, axes_);
  }
  return "tuning found " + FlagsOf(result.point, axes_) + ": steps are " +
         PercentText(result.gain) + " faster than with the defaults (95 % interval " +
         PercentText(result.gain_low) + " to " + PercentText(result.gain_high) + ", " + windows +
         ")";
}

// A search without scores has no result.
void JobTuner::Remember(const TuningResult& result) {
  if (!settings_->memory || meter_.signature() == 0 || result.points == 0) return;
  const Status kept = memory_.Keep({
      .of = Case(),
      .values = ValuesOf(result.point, axes_),
      .gained = result.gained,
      .gain = result.gain,
      .gain_low = result.gain_low,
      .gain_high = result.gain_high,
      .windows = result.windows,
      .found_at = WallSeconds(),
  });
  if (kept.ok()) return;
  say_("the result of tuning is not remembered: " + kept.message());
  settings_->memory = false;
}

void JobTuner::WriteReport() {
  if (settings_->report.empty()) return;
  const Status written =
      WriteWholeFile(settings_->report, TuningPage(rows_, axes_, *tuner_, world_, outcome_));
  if (written.ok()) return;
  say_("--autotune-report: " + written.message() + "; tuning goes on without it");
  settings_->report.clear();
}

}  // namespace hvd
