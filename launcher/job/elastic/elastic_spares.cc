#include "launcher/job/elastic/elastic_spares.h"

#include <cstdint>
#include <string>

#include "launcher/job/state/worker_kinds.h"
#include "runtime/base/text/format.h"

namespace hvd {

std::vector<uint32_t> NewSpares(const ElasticChange& change) {
  const ElasticState& elastic = change.elastic;
  if (!elastic.running || elastic.policy.spares == 0) return {};
  if (elastic.generation.size() < elastic.policy.max_np) return {};  // waiting workers join
  return change.AliveWorkers([](const WorkerKind& worker) {
    return worker.waiting() && !worker.was_member && !worker.leaving() && !worker.is_spare;
  });
}

void NoteSpare(ElasticChange& change, uint32_t worker) {
  change.state.Change(worker, [](RankRecord& record) { record.init.is_spare = true; });
  change.Do(AskMemory{worker});
}

void HandleMemory(ElasticChange& change, const MemoryReply& reply) {
  if (reply.rank >= change.state.ranks.size()) return;
  const RankRecord& record = change.state.ranks[reply.rank];
  if (!record.waiting() || !record.init.is_spare) return;
  constexpr uint64_t kMegabyte = 1'000'000;
  change.Notify(Format("a spare is ready on host {} (pid {}); it holds {} MB of memory",
                       change.state.plan.hosts[change.state.plan.ranks[reply.rank].host],
                       record.pid, reply.bytes / kMegabyte));
}

}  // namespace hvd
