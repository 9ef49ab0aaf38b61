// Structs of hvd.h into the runtime's own types and back. A caller built against an older hvd.h has
// smaller structs; a field that it does not know is read as 0.
#ifndef HVD_RUNTIME_API_TRANSLATE_H_
#define HVD_RUNTIME_API_TRANSLATE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "hvd/hvd.h"
#include "runtime/api/init_options.h"
#include "runtime/base/status.h"
#include "runtime/core/request/request.h"
#include "runtime/core/state/operation.h"
#include "runtime/device/shared_heap.h"

namespace hvd {

// The memory that a RequestSpec views and the caller does not hold.
struct RequestMemory {
  std::vector<TensorSpec> group;
};

// Views stay views.
Status ReadRequest(const hvd_request* request, RequestMemory* memory, RequestSpec* spec);

// The caller knows on_done, and has set it.
bool HasCallback(const hvd_request* request);

Status ReadInitOptions(const hvd_init_options* options, InitOptions* read);

// Ok when Store can write into it.
Status CheckResult(const hvd_result* result);
// Gives what there is room for; `heap` takes back the outputs that find none.
void Store(OperationResult result, SharedHeap& heap, hvd_result* place);

}  // namespace hvd

#endif  // HVD_RUNTIME_API_TRANSLATE_H_
