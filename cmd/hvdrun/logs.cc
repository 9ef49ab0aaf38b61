// hvdrun logs JOB: the kept output of a detached job, or of one of its ranks.
#include <poll.h>
#include <unistd.h>

#include <optional>

#include "cmd/hvdrun/verbs.h"
#include "configs/message_text.h"
#include "launcher/detached/follow.h"
#include "launcher/output/output.h"
#include "runtime/base/clock.h"
#include "runtime/base/text/format.h"
#include "runtime/base/text/number_text.h"

namespace hvd {
namespace {

constexpr int kReaderGone = 141;
constexpr int kLookEveryMs = 50;

struct LogsOptions {
  std::string job;
  bool follow = false;
  std::optional<uint32_t> rank;
  std::optional<int64_t> since_ns;
};

Result<LogsOptions> ParseLogsOptions(const std::vector<std::string>& args) {
  LogsOptions options;
  for (size_t at = 0; at < args.size(); ++at) {
    const std::string& word = args[at];
    const bool valued = word == "--rank" || word == "--since";
    if (valued && at + 1 == args.size()) return InvalidArgument(word + " needs a value");
    if (word == "-f" || word == "--follow") {
      options.follow = true;
    } else if (word == "--rank") {
      options.rank = ParseWhole<uint32_t>(args[++at]);
      if (!options.rank) return InvalidArgument("--rank " + Quoted(args[at]) + " is no rank");
    } else if (word == "--since") {
      options.since_ns = ParseSince(args[++at], WallNanoseconds());
      if (!options.since_ns)
        return InvalidArgument("--since " + Quoted(args[at]) +
                               " is no time: write 30s, 10m, 2h, 1d or 2026-01-31T12:30");
    } else if (word.starts_with('-') || !options.job.empty()) {
      return InvalidArgument(
          "takes the name of one detached job, -f, --rank and --since; try hvdrun logs --help");
    } else {
      options.job = word;
    }
  }
  if (options.rank && options.since_ns)
    return InvalidArgument("--since is for the output of all ranks; leave out --rank");
  return options;
}

int PrintRank(const DetachedJob& job, const LogsOptions& options) {
  const std::map<uint32_t, std::string> folders = RankFolders(job);
  const auto folder = folders.find(*options.rank);
  if (folder == folders.end())
    return FailVerb("logs", Format("job {} has no output of rank {} in {}", job.name, *options.rank,
                                   job.ranks_folder));
  RankFollower rank(folder->second);
  for (;;) {
    // Reads the state of the job first, so that everything printed before its end is there when the
    // files are read.
    const Result<DetachedJob> now = FindDetached(job.name);
    const bool over = !options.follow || !now.ok() || now->end;
    while (rank.Print()) {
    }
    if (over) return 0;
    (void)::poll(nullptr, 0, kLookEveryMs);
  }
}

int PrintAll(const DetachedJob& job, const LogsOptions& options) {
  const uint64_t end = EndOfLog(job.folder);  // a job may print faster than this is read
  LocalOutput output(job,
                     options.since_ns ? PlaceSince(job.folder, *options.since_ns) : LogPlace{});
  LogFollower follower(output);
  for (;;) {
    const LogFollower::Step step = follower.Next(STDOUT_FILENO);
    if (step == LogFollower::Step::kReaderGone) return kReaderGone;
    if (step == LogFollower::Step::kEnded) return 0;
    const bool all = step == LogFollower::Step::kIdle ||
                     (step == LogFollower::Step::kPrinted && follower.place().offset >= end);
    if (all && !options.follow) return 0;
  }
}

}  // namespace

int LogsVerb(const std::vector<std::string>& args) {
  const Result<LogsOptions> options = ParseLogsOptions(args);
  if (!options.ok()) return FailVerb("logs", options.status().message());
  const Result<DetachedJob> job = FindDetached(options->job);
  if (!job.ok()) return FailVerb("logs", job.status().message());
  return options->rank ? PrintRank(*job, *options) : PrintAll(*job, *options);
}

}  // namespace hvd
