// NameTable: the state of each tensor name of each process set, and the numbers that stand for
// names between ranks.
//
// A rank sends a name and its detail once, together with a number of its own choice; from then on
// it sends only the number. Numbers are used again in turn, so that a script which never repeats a
// name does not fill the memory. The number of an unnamed operation's name
// is used again at once. All of it lies in RecordMemory. One thread at a time (the engine's lock).
#ifndef HVD_RUNTIME_CORE_STATE_NAME_TABLE_H_
#define HVD_RUNTIME_CORE_STATE_NAME_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "runtime/backends/backend.h"
#include "runtime/base/record_memory.h"
#include "runtime/base/status.h"
#include "runtime/core/request/process_set.h"
#include "runtime/core/request/request.h"
#include "timeline/recorder.h"

namespace hvd {

struct Operation;

// "Member" below: an index in set->group.local.
struct TensorName : InRecordMemory {
  static constexpr uint32_t kNoNumber = 0xffffffff;

  RecordString text;
  int32_t domain = 0;              // the id of the set, or one of NameTable's
  ProcessSet* set = nullptr;       // its members agree; null once the set is removed
  Operation* operation = nullptr;  // of this rank, in flight
  bool kept = false;               // for an operation that is done and not retired
  bool once = false;               // the engine made it: no later operation has it
  Detail own_detail;
  Status refusal;                      // not ok: every rank will refuse own_detail
  RecordVector<CollectiveCall> calls;  // CallsOf(own_detail); barriers if that is refused
  // Whether rounds of these details may take the short way (Express); asked once they are agreed.
  enum class Express : uint8_t { kUnknown, kNo, kYes };
  Express express = Express::kUnknown;
  bool own_detail_known = false;  // to the peers, under own_number
  bool hosts_know_names = false;  // those of own_detail
  uint32_t own_number = kNoNumber;
  // For the recorder.
  TraceName trace;
  uint64_t bytes = 0;                              // of own_detail
  uint32_t submissions = 0;                        // of this rank
  TensorName *before = nullptr, *after = nullptr;  // see NameTable::FindOwn
  uint32_t references = 0;                         // numbers, of any rank, that stand for this name
  uint32_t arrived = 0;          // members whose announcement of this round has arrived
  bool agreed = false;           // all details were compared since the last one changed
  RecordVector<uint8_t> here;    // per member: its announcement of this round has arrived
  RecordVector<Detail> details;  // per member, as last received
  RecordVector<BufferDescriptor> descriptors;  // per member, of this round, for the first tensor
  // Per member, for the tensors after the first.
  RecordVector<RecordVector<BufferDescriptor>> more_descriptors;
  // Per member: payloads kept until all have arrived, and their memory for the next round.
  RecordVector<RecordVector<std::byte>> inboxes;

  // Index in set->group.local of a peer, or ProcessSet::kNotHere.
  uint32_t member_of(uint32_t peer) const { return set->index_of_peer[peer]; }
  // The round is over.
  void ClearRound();
};

class NameTable {
 public:
  // Domains of joins and of changes of process sets, which the world agrees about like tensors.
  static constexpr int32_t kJoinDomain = -1;
  static constexpr int32_t kSetsDomain = -2;
  static constexpr std::string_view kJoinName = "join", kSetsName = "process sets";

  static int32_t DomainOf(Collective collective, int32_t process_set) {
    if (collective == Collective::kJoin) return kJoinDomain;
    return IsControl(collective) ? kSetsDomain : process_set;
  }

  explicit NameTable(uint32_t peers) : peer_numbers_(peers) {}

  TensorName* Find(int32_t domain, std::string_view text) const;
  // For requests of this rank. Scripts use the same names in the same order, step by step, so the
  // name that followed the last one in the step before is compared first.
  TensorName* FindOwn(int32_t domain, std::string_view text);
  // The name that FindOwn finds without a look into the table; else null.
  TensorName* NextOwn(int32_t domain, std::string_view text) const {
    TensorName* next = last_own_ == nullptr ? nullptr : last_own_->after;
    return next != nullptr && next->domain == domain && next->text == text ? next : nullptr;
  }
  // The last request of this rank was for this name, which NextOwn has found.
  void Follow(TensorName* name) { last_own_ = name; }
  // A name that Find does not find.
  TensorName* Add(int32_t domain, ProcessSet* set, std::string_view text);

  // Gives the name a number of this rank: a free one, a new one, or the one that another name has
  // had longest.
  void NumberOwn(TensorName* name);
  // The operation of the name is retired. A name that does not come again gives its number back, so
  // that the next one of its kind uses the same number and the same memory, on all ranks.
  void Retire(TensorName* name);

  // Peer's new number for a name. kInvalidArgument for a number out of range.
  Status DefineOfPeer(uint32_t peer, uint32_t number, TensorName* name);
  // Peer's new number for a name of a set that this rank is no member of.
  Status DefineExternal(uint32_t peer, uint32_t number);
  // *name is null for a name of a set that this rank is no member of. False when the peer has not
  // defined the number.
  bool OfPeer(uint32_t peer, uint32_t number, TensorName** name) const;

  // The number stands for this name.
  bool IsOfPeer(uint32_t peer, uint32_t number, const TensorName& name) const {
    const RecordVector<Number>& numbers = peer_numbers_[peer];
    return number < numbers.size() && numbers[number].name == &name;
  }

  // Forgets the name if nothing refers to it. Call it when a name may have become unused.
  void ForgetIfUnused(TensorName* name);
  // The set is removed: Find does not find its names any more. Each of them is freed when nothing
  // refers to it.
  void Detach(const ProcessSet* set);

  std::vector<TensorName*> All() const;

 private:
  struct Key {
    int32_t domain;
    std::string_view text;  // of the TensorName itself
    friend bool operator==(const Key&, const Key&) = default;
  };
  struct Hash {
    size_t operator()(const Key& key) const;
  };
  struct Number {
    bool defined = false;
    TensorName* name = nullptr;
  };

  Status SetNumber(uint32_t peer, uint32_t number, TensorName* name);
  void DropReference(TensorName* name);
  void Link(TensorName* name);
  void Unlink(TensorName* name);

  using Names =
      std::unordered_map<Key, std::unique_ptr<TensorName>, Hash, std::equal_to<Key>,
                         RecordAllocator<std::pair<const Key, std::unique_ptr<TensorName>>>>;

  Names names_;
  std::vector<std::unique_ptr<TensorName>> detached_;
  TensorName* last_own_ = nullptr;         // that FindOwn found
  RecordVector<TensorName*> own_numbers_;  // number -> name; null: it is in free_numbers_
  RecordVector<uint32_t> free_numbers_;
  uint32_t next_own_number_ = 0;
  RecordVector<RecordVector<Number>> peer_numbers_;  // [peer][number]
};

}  // namespace hvd

#endif  // HVD_RUNTIME_CORE_STATE_NAME_TABLE_H_
