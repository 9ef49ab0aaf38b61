// Converts the structs of hvd.h to the runtime's own types and back. A caller built against an
// older hvd.h has smaller structs; fields that it lacks are read as 0.
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

// Memory viewed by a RequestSpec that is not the caller's.
struct RequestMemory {
  std::vector<TensorSpec> group;
};

// *spec views the caller's memory and *memory.
Status ReadRequest(const hvd_request* request, RequestMemory* memory, RequestSpec* spec);

// Whether the caller's struct has on_done and it is set.
bool HasCallback(const hvd_request* request);

Status ReadInitOptions(const hvd_init_options* options, InitOptions* read);

// Ok if Store can write into it.
Status CheckResult(const hvd_result* result);
// Stores what fits; outputs that do not are freed in `heap`.
void Store(OperationResult result, SharedHeap& heap, hvd_result* place);

}  // namespace hvd

#endif  // HVD_RUNTIME_API_TRANSLATE_H_
