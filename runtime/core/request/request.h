// A request of one rank under one name: as submitted, and as exchanged while the ranks negotiate.
#ifndef HVD_RUNTIME_CORE_REQUEST_REQUEST_H_
#define HVD_RUNTIME_CORE_REQUEST_REQUEST_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "runtime/backends/collective.h"
#include "runtime/base/record_memory.h"
#include "runtime/base/status.h"

namespace hvd {

inline constexpr size_t kMaxNameBytes = 16384;
inline constexpr size_t kMaxDimensions = 8;
inline constexpr size_t kMaxTensors = 65536;  // of one group

// True for collectives of the whole world without tensors: join, and adding or removing a process
// set.
constexpr bool IsControl(Collective collective) {
  return collective == Collective::kJoin || collective == Collective::kAddProcessSet ||
         collective == Collective::kRemoveProcessSet;
}

struct TensorSpec {
  DType dtype = DType::kUint8;
  const void* input = nullptr;
  void* output = nullptr;  // null: see CollectiveCall
  std::span<const int64_t> shape;
  int32_t device_index = 0;  // used with RequestSpec::device
  void* stream = nullptr;    // see CollectiveCall
};

// A request as submitted by the caller. Views, valid during the call.
struct RequestSpec {
  Collective collective = Collective::kBarrier;
  std::string_view name;
  bool unnamed = false;  // the engine chooses the name, by submission order on the set
  TensorSpec tensor;
  std::span<const TensorSpec> group;  // if not empty, used instead of `tensor`, all or none
  ReduceOp op = ReduceOp::kSum;
  DeviceKind device = DeviceKind::kHost;
  uint32_t root = 0;        // world rank
  int32_t process_set = 0;  // kRemoveProcessSet: the set to remove
  double prescale = 1.0;
  double postscale = 1.0;
  std::span<const int64_t> splits;    // alltoall; empty: equal shares
  std::span<const uint32_t> members;  // kAddProcessSet: world ranks, ascending
  uint64_t names_hash = 0;            // of the names of its tensors; 0: identified by position
  std::string_view names;             // one per line; may be empty

  // Empty for a collective without data.
  std::span<const TensorSpec> tensors() const {
    if (collective == Collective::kBarrier || IsControl(collective)) return {};
    return group.empty() ? std::span(&tensor, 1) : group;
  }
};

// One tensor of a Detail.
struct TensorDetail {
  DType dtype = DType::kUint8;
  RecordVector<int64_t> shape;
  RecordVector<int64_t> splits;  // alltoall: rows for each member

  int64_t rows() const { return shape.empty() ? 0 : shape[0]; }
  friend bool operator==(const TensorDetail&, const TensorDetail&) = default;
};

// The part of a request that must be the same on every rank (except the first extent and the
// splits, see CompareDetails). Sent with the first request of a name and when it changes.
struct Detail {
  Collective collective = Collective::kBarrier;
  ReduceOp op = ReduceOp::kSum;
  DeviceKind device = DeviceKind::kHost;
  uint32_t root = 0;
  int32_t process_set = 0;
  double prescale = 1.0;
  double postscale = 1.0;
  RecordVector<uint32_t> members;
  RecordVector<TensorDetail> parts;
  uint64_t names_hash = 0;
  RecordString names;  // for the message of a mismatch; empty if they were not sent

  friend bool operator==(const Detail&, const Detail&) = default;
};

// The detail of one rank.
struct RankDetail {
  uint32_t rank = 0;  // world rank, for the message
  const Detail* detail = nullptr;
};

// kInvalidArgument with the reason if this request can never succeed on this group.
Status CheckRequest(const RequestSpec& spec, const Group& group);

// The same for a request that matches its name's detail (Describes): checks only what is not in the
// detail.
Status CheckRepeated(const RequestSpec& spec, const Group& group);

// An error in a request that is the same on all ranks. All ranks detect it, so that none waits for
// one that was refused. `devices`: this engine has a backend for device memory.
Status CheckAgreed(std::string_view name, const Detail& detail, bool devices);

// `members`: size of the group, for equal shares.
Detail DetailOf(const RequestSpec& spec, uint32_t members);
// DetailOf(spec, members) == detail, without constructing it. The request may be unchecked.
bool Describes(const Detail& detail, const RequestSpec& spec, uint32_t members);

// The backend's calls, one per tensor and at least one, complete except for memory and result. They
// view `detail` and `group`.
RecordVector<CollectiveCall> CallsOf(const Detail& detail, const Group& group);

// `names`: include the names of its tensors, which only the first exchange of a detail needs.
std::string EncodeDetail(const Detail& detail, std::string_view name, bool names = true);
// kInvalidArgument for anything EncodeDetail does not produce. The name is a view into `bytes`.
Status DecodeDetail(std::string_view bytes, Detail* detail, std::string_view* name);

// An error that describes the first field in which ranks differ: the tensor, both values and their
// ranks. Ok if all agree. Dimension 0 may differ for allgather and alltoall, splits always, and
// names if their hashes are equal.
Status CompareDetails(std::string_view name, std::span<const RankDetail> details);

// The number of elements of a shape that CheckRequest has accepted.
size_t ElementsOf(std::span<const int64_t> shape);

// "[0, 2, 5]"
std::string RanksText(std::span<const uint32_t> ranks);

std::string_view NameOf(Collective collective);
std::string_view NameOf(ReduceOp op);

}  // namespace hvd

#endif  // HVD_RUNTIME_CORE_REQUEST_REQUEST_H_
