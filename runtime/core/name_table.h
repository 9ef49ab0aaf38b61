// NameTable: what is known about each tensor name, and the numbers that stand for names between ranks.
//
// A rank tells a name and its detail once, together with a number of its own choice; from then on the number is enough.
// Numbers are used again in turn, so that a script which never repeats a name does not fill the memory. One thread at a
// time (the engine's lock).
#ifndef HVD_RUNTIME_CORE_NAME_TABLE_H_
#define HVD_RUNTIME_CORE_NAME_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "runtime/backends/backend.h"
#include "runtime/base/status.h"
#include "runtime/core/request.h"

namespace hvd {

struct Operation;

struct TensorName {
  static constexpr uint32_t kNoNumber = 0xffffffff;

  std::string text;
  Operation* operation = nullptr;  // of this rank, in flight
  Detail own_detail;
  bool own_detail_known = false;  // to the peers, under own_number
  uint32_t own_number = kNoNumber;
  uint32_t references = 0;      // numbers, of any rank, that stand for this name
  uint32_t arrived = 0;         // peers whose announcement of this round is here
  bool agreed = false;          // details were compared since the last change of any
  std::vector<uint8_t> here;    // per peer: its announcement of this round is here
  std::vector<Detail> details;  // per peer, as last told
  std::vector<Offer> offers;    // per rank, of this round
  std::vector<std::vector<std::byte>> inboxes;  // per peer: a payload kept until all have arrived
};

class NameTable {
 public:
  explicit NameTable(uint32_t ranks) : ranks_(ranks), peer_numbers_(ranks) {}

  TensorName* Find(std::string_view text) const;
  TensorName* FindOrAdd(std::string_view text);

  // Gives the name a number of this rank, if need be that of the name that has had one longest.
  void NumberOwn(TensorName* name);
  // Peer's new number for a name, with its detail. kInvalidArgument for a number out of range.
  Status DefineOfPeer(uint32_t peer, uint32_t number, std::string_view text, Detail detail);
  // nullptr when the peer has not defined the number.
  TensorName* OfPeer(uint32_t peer, uint32_t number) const;

  // To be called when a name may have become unused: forgets it if nothing refers to it.
  void ForgetIfUnused(TensorName* name);

 private:
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view s) const { return std::hash<std::string_view>{}(s); }
  };

  void DropReference(TensorName* name);

  const uint32_t ranks_;
  std::unordered_map<std::string, std::unique_ptr<TensorName>, Hash, std::equal_to<>> names_;
  std::vector<TensorName*> own_numbers_;  // number -> name
  uint32_t next_own_number_ = 0;
  std::vector<std::vector<TensorName*>> peer_numbers_;  // [peer][number] -> name
};

}  // namespace hvd

#endif  // HVD_RUNTIME_CORE_NAME_TABLE_H_
