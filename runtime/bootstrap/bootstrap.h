// Bootstrap: joins this process to a world and provides its shared memory.
#ifndef HVD_RUNTIME_BOOTSTRAP_BOOTSTRAP_H_
#define HVD_RUNTIME_BOOTSTRAP_BOOTSTRAP_H_

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/base/status.h"
#include "runtime/base/unique_fd.h"
#include "runtime/device/shared_heap.h"
#include "runtime/net/kv_store.h"
#include "runtime/net/layout.h"
#include "runtime/segment/job_page.h"
#include "runtime/segment/shared_memory.h"

namespace hvd {

// One membership in a world, from init to shutdown.
struct World {
  uint64_t generation = 0;
  uint32_t rank = 0, size = 1;
  uint32_t local_rank = 0, local_size = 1;
  uint32_t cross_rank = 0, cross_size = 1;
  bool homogeneous = true;
  // After this world the process may join another one with different ranks.
  bool ranks_change = false;
  // All ranks, by world rank. A local rank is the index of a rank block in its host's page; the
  // ranks of a host need not be consecutive.
  std::vector<RankPlace> places{RankPlace{}};
  uint32_t hosts = 1;
  // For connections between hosts: the job's secret, and where to listen.
  std::string data_key;
  ListenHints listen;
  UniqueFd page_fd;
  Mapping page_memory;
  JobPage page;  // a view of page_memory

  uint32_t host() const { return places[rank].host; }
};

// Thread-safe. A new Join is possible after Leave.
class Bootstrap {
 public:
  virtual ~Bootstrap() = default;

  // Blocks until the world is complete. `timeout` <= 0: no limit of its own, but it still fails
  // once the launcher knows that a rank can no longer join. kDismissed: the job continues without
  // this process, which must exit successfully.
  virtual Result<World> Join(Duration timeout) = 0;
  // Leaves the generation; call after the last access to its page. `since`: when this rank began to
  // leave; from then on other ranks may have failed because of it.
  virtual void Leave(uint64_t generation, TimePoint since) = 0;

  virtual SegmentSource& segments() = 0;
  // The key-value store of the current generation's ranks. Empty outside a generation.
  virtual KvStore& directory() = 0;

  // Reads the messages of the agent without blocking. Not ok: the agent is gone.
  virtual Status PollAgent() = 0;
  // True if an agent must detect deaths in this world (a runtime thread then holds the alive mark).
  virtual bool watched() const = 0;

  // In a forked child: releases what belongs to the parent. Async-signal-safe.
  virtual void CloseAfterFork() = 0;
};

// Maps a page created by the agent.
Status AttachPage(UniqueFd fd, uint64_t bytes, World* world);

}  // namespace hvd

#endif  // HVD_RUNTIME_BOOTSTRAP_BOOTSTRAP_H_
