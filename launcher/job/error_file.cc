#include "launcher/job/error_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

#include "launcher/job/report/failure_code.h"
#include "launcher/job/report/job_result.h"
#include "launcher/job/report/report.h"
#include "runtime/base/output_file.h"
#include "runtime/base/text/path_text.h"

namespace hvd {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kIndent = 2;

const char* KindName(JobFailure::Kind kind) {
  switch (kind) {
    case JobFailure::Kind::kRank: return "rank";
    case JobFailure::Kind::kCommand: return "command";
    case JobFailure::Kind::kHost:
    case JobFailure::Kind::kHosts: return "host";
    case JobFailure::Kind::kInterrupt: return "interrupt";
    case JobFailure::Kind::kTimeout: return "timeout";
    case JobFailure::Kind::kInternal: return "internal";
    case JobFailure::Kind::kEnding: return "ending";
    case JobFailure::Kind::kStall: return "stall";
    case JobFailure::Kind::kRoute: return "connection";
    case JobFailure::Kind::kLauncher: return "launcher";
  }
  return "internal";
}

void AddRank(Json& json, const JobState& state, uint32_t number) {
  const RankRecord& rank = state.ranks[number];
  json["rank"] = rank.rank;
  json["host"] = state.plan.hosts[state.plan.ranks[number].host];
  json["pid"] = rank.pid;
  json["cause"] = DescribeCause(rank);
  if (rank.end && rank.end->by_signal) {
    json["signal"] = rank.end->value;
    json["signal_name"] = SignalName(rank.end->value);
  }
  json["out_of_memory"] = rank.end && rank.end->out_of_memory;
  json["inside_world"] = rank.loss.has_value();
  json["stderr"] = rank.end ? rank.end->last_stderr : "";
  json["others_ended"] = CountEndedBecause(state, number);
}

// Every rank's state, for programs that look at more than the first cause.
Json RanksJson(const JobState& state) {
  Json list = Json::array();
  for (uint32_t number = 0; number < state.ranks.size(); ++number) {
    const RankRecord& rank = state.ranks[number];
    Json entry = {{"rank", rank.rank},
                  {"host", state.plan.hosts[state.plan.ranks[number].host]},
                  {"pid", rank.pid},
                  {"state", RankStateName(rank)}};
    if (rank.end) entry[rank.end->by_signal ? "signal" : "exit_code"] = rank.end->value;
    list.push_back(std::move(entry));
  }
  return list;
}

Status CannotWrite(const std::string& path, int error) {
  return InvalidArgument("the error file " + path + " cannot be written: " + std::strerror(error));
}

}  // namespace

std::string ErrorJson(const JobState& state, const std::string& job_id,
                      const std::vector<std::string>& command) {
  Json json = {{"version", 1},
               {"job", job_id},
               {"command", command},
               {"num_proc", state.plan.size()},
               {"exit_code", ExitCode(state)}};
  if (state.failure) {
    json["kind"] = KindName(state.failure->kind);
    json["code"] = FailureCodeOf(state);
    json["report"] = Report(state);
    std::optional<uint32_t> cause = FirstFailedRank(state);
    if (state.failure->kind == JobFailure::Kind::kRank && cause) AddRank(json, state, *cause);
    if (state.failure->kind == JobFailure::Kind::kHost ||
        state.failure->kind == JobFailure::Kind::kHosts) {
      json["host"] = state.plan.hosts[state.failure->host];
    }
    if (state.failure->kind == JobFailure::Kind::kStall) {
      json["missing"] = Json::array();
      for (const MissingRank& missing : state.failure->verdict.missing)
        json["missing"].push_back({{"rank", missing.rank}, {"class", ClassName(missing.found)}});
    }
    if (state.failure->kind == JobFailure::Kind::kInterrupt) {
      json["signal"] = state.failure->signal;
      json["signal_name"] = SignalName(state.failure->signal);
    }
  }
  if (state.policy().measures_training) {
    const auto seconds = [](Duration d) { return std::chrono::duration<double>(d).count(); };
    json["elastic"] = {{"generations", state.generation},
                       {"restarts", state.elastic.restarts},
                       {"trained_seconds", seconds(state.elastic.time.trained())},
                       {"total_seconds", seconds(state.elastic.time.total())}};
  }
  json["ranks"] = RanksJson(state);
  // The output of workers may not be UTF-8.
  return json.dump(kIndent, ' ', false, Json::error_handler_t::replace) + "\n";
}

Status PrepareErrorFile(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode)) {
    return InvalidArgument("the error file " + path + " is not an ordinary file; name another");
  }
  if (::access(FolderOf(path).c_str(), W_OK | X_OK) != 0) return CannotWrite(path, errno);
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) return CannotWrite(path, errno);
  return Status::Ok();
}

Status WriteErrorFile(const std::string& path, std::string_view text) {
  const Status written = WriteWholeFile(path, text);
  return written.ok() ? written : InvalidArgument("the error file " + written.message());
}

}  // namespace hvd
