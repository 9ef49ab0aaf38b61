// Request: what one rank asks for under one name, before and while the ranks agree about it.
#ifndef HVD_RUNTIME_CORE_REQUEST_H_
#define HVD_RUNTIME_CORE_REQUEST_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/backends/backend.h"
#include "runtime/backends/collective.h"
#include "runtime/base/status.h"

namespace hvd {

inline constexpr size_t kMaxNameBytes = 16384;
inline constexpr size_t kMaxDimensions = 8;

enum class DeviceKind : uint8_t { kHost = 0, kCuda = 1 };

// A request as it comes from the caller. Views: valid during the call.
struct RequestSpec {
  Collective collective = Collective::kBarrier;
  std::string_view name;
  ReduceOp op = ReduceOp::kSum;
  DType dtype = DType::kUint8;
  const void* input = nullptr;
  void* output = nullptr;
  std::span<const int64_t> shape;
  DeviceKind device = DeviceKind::kHost;
  uint32_t root = 0;
  int32_t process_set = 0;
  double prescale = 1.0;
  double postscale = 1.0;
};

// What has to be the same on every rank. Travels with the first request of a name and when it changes.
struct Detail {
  Collective collective = Collective::kBarrier;
  ReduceOp op = ReduceOp::kSum;
  DType dtype = DType::kUint8;
  DeviceKind device = DeviceKind::kHost;
  uint32_t root = 0;
  int32_t process_set = 0;
  double prescale = 1.0;
  double postscale = 1.0;
  std::vector<int64_t> shape;

  friend bool operator==(const Detail&, const Detail&) = default;
};

// kInvalidArgument or kUnsupported with a sentence when this request can never work on a world of `size` ranks. The
// number of elements is stored in *count.
Status CheckRequest(const RequestSpec& spec, uint32_t size, size_t* count);

Detail DetailOf(const RequestSpec& spec);
// DetailOf(spec) == detail, without making one.
bool Describes(const Detail& detail, const RequestSpec& spec);

// A request as it travels between ranks: this head, then the detail if any, padded to 8 bytes, then the payload. With the
// frame of the stream it fills one cache line, so that a tiny tensor costs one line on its way.
struct RequestHead {
  uint32_t name_id;        // the sender's number of the name; a detail (re)defines it
  uint32_t detail_bytes;   // 0: as told before
  uint32_t payload_bytes;  // behind the detail
  uint32_t tiny_bytes;     // of a payload that travels in `words`; then payload_bytes is 0
  uint64_t words[4];       // of the backend's offer, or the tiny payload
};
static_assert(sizeof(RequestHead) == 48);

std::string EncodeDetail(const Detail& detail, std::string_view name);
// kInvalidArgument for anything EncodeDetail does not write. The name is a view into `bytes`.
Status DecodeDetail(std::string_view bytes, Detail* detail, std::string_view* name);

// One sentence about the first field in which ranks differ: the tensor, both sides' values, their ranks. Ok when all
// agree. details[r] is that of rank r.
Status CompareDetails(std::string_view name, std::span<const Detail* const> details);

std::string_view NameOf(Collective collective);
std::string_view NameOf(ReduceOp op);

}  // namespace hvd

#endif  // HVD_RUNTIME_CORE_REQUEST_H_
