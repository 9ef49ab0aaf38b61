// The backends by the names used with hvd_built and hvd_enabled: whether each can be loaded, when a
// world uses it, whether it connects the hosts of a world, and how it is opened. What else a new
// backend needs: runtime/backends/README.md.
#ifndef HVD_RUNTIME_API_BACKEND_LIST_H_
#define HVD_RUNTIME_API_BACKEND_LIST_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "runtime/backends/inter_host_comm.h"
#include "runtime/backends/inter_host_loader.h"
#include "runtime/backends/mpi/mpi_plugin.h"
#include "runtime/base/status.h"
#include "runtime/net/kv_store.h"

namespace hvd {

// Facts about a world and this process.
struct BackendFacts {
  bool several_hosts = false;
  bool over_mpi = false;    // MPI connects the ranks
  bool mpi_beside = false;  // MPI started the ranks but does not connect them
  bool mpi_threads = false;
  bool cuda = false, nccl = false;  // loaded and used
};

// Arguments for opening a backend that connects hosts.
struct InterHostOpening {
  const InterHostOptions& options;
  KvStore& directory;  // outlives the opened backend
  MpiWorld* mpi;       // null: the world is not over MPI
};

struct BackendRow {
  std::string_view name;
  // 0: cannot be loaded. For "nccl": its version.
  int32_t (*built)();
  bool (*used)(const BackendFacts& facts);
  // Whether it connects the hosts of such a multi-host world (true for exactly one row), and how it
  // is then opened. Null: never connects hosts.
  bool (*connects)(const BackendFacts& facts) = nullptr;
  Result<std::unique_ptr<InterHostComm>> (*open)(const InterHostOpening& opening) = nullptr;
};

std::span<const BackendRow> BackendRows();
// Null: no backend of this name.
const BackendRow* FindBackend(std::string_view name);
// The row that connects the hosts of such a world; null: a single host. Pure.
const BackendRow* InterHostBackend(const BackendFacts& facts);

}  // namespace hvd

#endif  // HVD_RUNTIME_API_BACKEND_LIST_H_
