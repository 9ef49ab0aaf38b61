// Any bytes as the detail of a request: refused, or one that encodes to the same bytes.
#include "runtime/core/request/request.h"
#include "runtime/device/host_reduce.h"
#include "test/fuzz/seeds.h"

// Its real file has kernels that clang 14 cannot compile (_Float16 without AVX-512); no detail
// depends on the answer.
bool hvd::CanAdasum(DType) { return true; }

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  hvd::Detail detail;
  std::string plain = hvd::EncodeDetail(detail, "barrier");
  detail.collective = hvd::Collective::kAllreduce;
  detail.parts = {{hvd::DType::kFloat32, {2, 3, 5}, {}}, {hvd::DType::kUint8, {}, {1, 1}}};
  detail.members = {0, 7};
  detail.prescale = 0.5;
  hvd::WriteSeeds(*argc, *argv,
                  {plain, hvd::EncodeDetail(detail, "gradient.0"), hvd::EncodeDetail(detail, "")});
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view bytes(reinterpret_cast<const char*>(data), size);
  hvd::Detail detail;
  std::string_view name;
  if (!hvd::DecodeDetail(bytes, &detail, &name).ok()) return 0;
  hvd::Must(hvd::EncodeDetail(detail, name) == bytes);
  return 0;
}
