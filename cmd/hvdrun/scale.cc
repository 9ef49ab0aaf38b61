// hvdrun scale JOB N and hvdrun drain JOB HOST: change the size or the hosts of a detached elastic
// job. Its hvdrun reads the file that they write as an additional host source.
#include "cmd/hvdrun/verbs.h"
#include "configs/message_text.h"
#include "launcher/detached/steered_watch.h"
#include "launcher/process/proc_file.h"
#include "runtime/base/output_file.h"
#include "runtime/base/text/format.h"
#include "runtime/base/text/number_text.h"

namespace hvd {
namespace {

// The elastic job with this name, while it runs.
Result<DetachedJob> ElasticJob(const std::string& name) {
  Result<DetachedJob> job = FindDetached(name);
  if (!job.ok()) return job;
  if (job->end) return InvalidArgument("job " + job->name + " has ended");
  if (!job->elastic)
    return InvalidArgument("job " + job->name +
                           " is not elastic: the number of its ranks is fixed; start it with "
                           "--elastic");
  return job;
}

// If two of these commands run at once, the later one wins.
Status Steer(const DetachedJob& job, const std::function<void(Steering&)>& change) {
  Steering steering = ParseSteering(ReadSmallFile(job.PathOf("hosts")));
  change(steering);
  return WriteWholeFile(job.PathOf("hosts"), SteeringText(steering));
}

int Steered(const char* verb, const Status& written, const std::string& sentence) {
  if (!written.ok()) return FailVerb(verb, written.message(), 1);
  return PrintText(Format("hvdrun {}: {}\n", verb, sentence));
}

}  // namespace

int ScaleVerb(const std::vector<std::string>& args) {
  const auto ranks = args.size() == 2 ? ParseWhole<uint32_t>(args[1]) : std::nullopt;
  if (!ranks || *ranks == 0)
    return FailVerb("scale", "takes the name of one detached elastic job and a number of ranks");
  const Result<DetachedJob> job = ElasticJob(args[0]);
  if (!job.ok()) return FailVerb("scale", job.status().message());
  const Status written = Steer(*job, [&](Steering& steering) { steering.limit = *ranks; });
  return Steered(
      "scale", written,
      Format("job {} uses at most {} slots of its hosts from now on, within --min-np and "
             "--max-np; its ranks change at their next commit",
             job->name, *ranks));
}

int DrainVerb(const std::vector<std::string>& all_args) {
  std::vector<std::string> args = all_args;
  const bool undo = std::erase(args, "--undo") > 0;
  if (args.size() != 2 || args[1].empty() || args[1].find_first_of(" \n") != args[1].npos)
    return FailVerb("drain", "takes the name of one detached elastic job and a host");
  const Result<DetachedJob> job = ElasticJob(args[0]);
  if (!job.ok()) return FailVerb("drain", job.status().message());
  const Status written = Steer(*job, [&](Steering& steering) {
    if (undo) {
      steering.drained.erase(args[1]);
    } else {
      steering.drained.insert(args[1]);
    }
  });
  const std::string host = Printable(args[1]);
  return Steered("drain", written,
                 undo ? "job " + job->name + " may use host " + host + " again"
                      : "job " + job->name + " leaves host " + host +
                            " at the next commit of its ranks, and does not use it again");
}

}  // namespace hvd
