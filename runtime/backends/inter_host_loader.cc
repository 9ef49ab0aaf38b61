#include "runtime/backends/inter_host_loader.h"

#include "runtime/backends/plugin_interface.h"
#include "runtime/base/text/format.h"

namespace hvd {
namespace {

Result<InterHostCreate> LoadCreate(uint32_t rank, const std::string& folder) {
  const Plugin library = {
      .library = "libhvd_gloo.so",
      .lacks = Format("this job has several hosts and rank {} cannot load libhvd_gloo.so, which "
                      "connects them,",
                      rank),
      .built_by = "without Gloo; build it where Gloo is installed (Debian: libgloo-dev)",
      .remedy = "install the Gloo that it was built with (Debian: libgloo0)"};
  const char* const names[] = {kInterHostCreateName};
  const Result<std::vector<void*>> functions = LoadPlugin(library, names, folder);
  if (!functions.ok()) return functions.status();
  return reinterpret_cast<InterHostCreate>((*functions)[0]);
}

}  // namespace

Result<std::unique_ptr<InterHostComm>> OpenInterHostComm(const InterHostOptions& options,
                                                         KvStore& directory,
                                                         const std::string& folder) {
  const Result<InterHostCreate> create = LoadCreate(options.rank, folder);
  if (!create.ok()) return create.status();
  Status status;
  std::unique_ptr<InterHostComm> comm((*create)(&options, &directory, &status));
  if (comm == nullptr) return status;
  return comm;
}

bool CanOpenInterHostComm() {
  static const bool can = LoadCreate(0, "").ok();
  return can;
}

}  // namespace hvd
