#include "configs/horovod_settings.h"

#include "configs/launcher_words.h"

namespace hvd {
namespace {

constexpr std::string_view kNoCycle =
    "a tensor is reduced as soon as every rank has announced it, between hosts with those that "
    "became ready while earlier ones were on their way, so there is no cycle";
constexpr std::string_view kNoCache =
    "ranks match tensors in shared memory, and hosts by their leaders' messages, so there is no "
    "response cache to size";
constexpr std::string_view kHierarchical =
    "collectives between hosts go through one leader per host, and those of GPUs as NCCL chooses";
constexpr std::string_view kLearntNoise = "--autotune learns the noise from what it measures";
constexpr std::string_view kNoNccl =
    "each process set has one stream on a GPU; NCCL divides its work among channels by itself";
constexpr std::string_view kNoMpiRanks = "what ranks say to each other does not go over MPI";
constexpr std::string_view kNoTime =
    "log lines carry no time; -prefix-timestamp puts one in front of every line of output";

HorovodSetting Switch(Answer answer, std::string_view reason, std::vector<std::string_view> flags,
                      std::string_view env = {}, std::string_view yaml = {}) {
  return {.row = {.section = {},
                  .name = flags.front().substr(2),
                  .flags = flags,
                  .env = env,
                  .yaml = yaml,
                  .type = Type::kBool,
                  .default_text = "off",
                  .target = {}},
          .answer = answer,
          .reason = reason};
}

HorovodSetting Value(Answer answer, std::string_view reason, std::vector<std::string_view> flags,
                     std::string_view env = {}, std::string_view yaml = {},
                     std::string_view harmless = {}) {
  const std::string_view name =
      flags.empty() ? (env.empty() ? yaml : env) : flags.front().substr(2);
  return {.row = {.section = {},
                  .name = name,
                  .flags = flags,
                  .env = env,
                  .yaml = yaml,
                  .type = Type::kString,
                  .default_text = harmless,
                  .example = "1",
                  .what = "its value",
                  .target = {}},
          .answer = answer,
          .reason = reason};
}

HorovodSetting InGroup(std::string_view group, HorovodSetting setting) {
  setting.row.group = group;
  return setting;
}

Answer AnswerOf(const LauncherWord& word) {
  if (word.meaning == WordMeaning::kRefused) return Answer::kRefused;
  return word.meaning == WordMeaning::kNoEffect ? Answer::kNoEffect : Answer::kAsIs;
}

// The row for an option of another launcher that is accepted, at least with some value.
HorovodSetting OfLauncher(const LauncherWord& word) {
  constexpr Type kTypes[] = {Type::kBool, Type::kString, Type::kIntRange};
  HorovodSetting setting{.row = {.section = {},
                                 .name = word.word,
                                 .flags = {word.word},
                                 .type = kTypes[word.values],
                                 .default_text = word.values == 0 ? "off" : word.harmless,
                                 .example = "1",
                                 .what = "its value",
                                 .foreign = true,
                                 .target = {}},
                         .answer = AnswerOf(word),
                         .reason = word.text};
  // Names are those of the long flags, without dashes.
  setting.row.name.remove_prefix(word.word.starts_with("--") ? 2 : 1);
  return setting;
}

std::vector<HorovodSetting> MakeLauncherSettings() {
  std::vector<HorovodSetting> settings;
  for (const LauncherWord& word : LauncherWords()) {
    if (word.meaning == WordMeaning::kAlias) continue;
    if (word.meaning == WordMeaning::kRefused && word.harmless.empty()) continue;
    settings.push_back(OfLauncher(word));
  }
  return settings;
}

std::vector<HorovodSetting> MakeSettings() {
  using enum Answer;
  return {
      Switch(kAsIs, {}, {"--disable-cache"}),

      InGroup("controller", Switch(kAsIs, {}, {"--gloo"})),
      Switch(kNoEffect, kNoMpiRanks, {"--mpi-threads-disable", "--no-mpi-threads-disable"},
             "HOROVOD_MPI_THREADS_DISABLE", "library_options.mpi_threads_disable"),
      Value(kNoEffect, "the runtime adds up on the CPU itself", {}, "HOROVOD_CPU_OPERATIONS", {},
            "gloo"),

      Value(kNoEffect, kNoCycle, {"--cycle-time-ms"}, "HOROVOD_CYCLE_TIME", "params.cycle_time_ms"),
      Value(kNoEffect, kNoCache, {"--cache-capacity"}, "HOROVOD_CACHE_CAPACITY",
            "params.cache_capacity"),
      Switch(kNoEffect, kHierarchical, {"--hierarchical-allreduce", "--no-hierarchical-allreduce"},
             "HOROVOD_HIERARCHICAL_ALLREDUCE", "params.hierarchical_allreduce"),
      Switch(kNoEffect, kHierarchical, {"--hierarchical-allgather", "--no-hierarchical-allgather"},
             "HOROVOD_HIERARCHICAL_ALLGATHER", "params.hierarchical_allgather"),
      Switch(kNoEffect, kHierarchical, {"--torus-allreduce", "--no-torus-allreduce"},
             "HOROVOD_TORUS_ALLREDUCE", "params.torus_allreduce"),

      Value(kNoEffect, kLearntNoise, {"--autotune-gaussian-process-noise"},
            "HOROVOD_AUTOTUNE_GAUSSIAN_PROCESS_NOISE", "autotune.gaussian_process_noise"),

      Value(kNoEffect, kNoNccl, {"--num-nccl-streams"}, "HOROVOD_NUM_NCCL_STREAMS",
            "library_options.num_nccl_streams"),
      Value(kNoEffect,
            "the runtime has no thread that is always busy; --bind-to core gives each rank cores "
            "of its own",
            {"--thread-affinity"}, "HOROVOD_THREAD_AFFINITY", "library_options.thread_affinity"),

      Switch(kNoEffect, kNoTime, {"--log-with-timestamp"}, {}, "logging.with_timestamp"),
      Switch(kAsIs, {}, {"--log-without-timestamp"}, "HOROVOD_LOG_HIDE_TIME"),
      Switch(kAsIs, {}, {"--log-hide-timestamp", "--no-log-hide-timestamp"}, {},
             "logging.hide_timestamp"),
  };
}

}  // namespace

std::span<const HorovodSetting> HorovodSettings() {
  static const std::vector<HorovodSetting>* const settings =
      new std::vector<HorovodSetting>(MakeSettings());
  return *settings;
}

std::span<const HorovodSetting> LauncherSettings() {
  static const std::vector<HorovodSetting>* const settings =
      new std::vector<HorovodSetting>(MakeLauncherSettings());
  return *settings;
}

std::span<const Row> HorovodRows() {
  static const std::vector<Row>* const rows = [] {
    auto* made = new std::vector<Row>;
    for (std::span<const HorovodSetting> settings : {HorovodSettings(), LauncherSettings()}) {
      for (const HorovodSetting& setting : settings) made->push_back(setting.row);
    }
    return made;
  }();
  return *rows;
}

}  // namespace hvd
