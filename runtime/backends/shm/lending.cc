#include "runtime/backends/shm/lending.h"

#include <cstring>
#include <optional>
#include <string>

#include "runtime/base/log.h"

namespace hvd {
namespace {

constexpr uint64_t kStagedBit = uint64_t{1} << 32;

}  // namespace

bool Loan::LeftByAllBut(uint32_t member) const {
  for (uint32_t m = 0; m < members; ++m) {
    if (m != member && !LeftBy(m)) return false;
  }
  return true;
}

void LoanOffer::WriteTo(Offer* offer) const {
  offer->words = {data.segment | (staged ? kStagedBit : 0), data.offset, control.segment,
                  control.offset};
}

LoanOffer LoanOffer::In(const Offer& offer) {
  const auto& words = offer.words;
  return {{static_cast<uint32_t>(words[0]), words[1]},
          {static_cast<uint32_t>(words[2]), words[3]},
          (words[0] & kStagedBit) != 0};
}

void WarnWithoutSharedMemory(size_t bytes) {
  static std::atomic<bool> warned{false};
  if (warned.exchange(true)) return;
  LogWarning("this rank got no shared memory for a tensor of " + std::to_string(bytes) +
             " bytes, so it goes to the other ranks through the request rings, which is slower; "
             "give the job more memory or fewer ranks per host");
}

// What is still in use by a peer stays allocated: the group is over and nobody can say when the peer is done.
Lending::~Lending() {
  Collect();
  for (auto& [bytes, blocks] : idle_) {
    for (const Block& block : blocks) heap_.Free(block.memory);
  }
}

Result<Loan> Lending::Open(uint32_t members, size_t bytes) {
  Loan loan;
  loan.control_bytes = RoundUp(bytes, kCacheLine);
  loan.members = members;
  std::vector<Block>& idle = idle_[loan.control_bytes];
  if (!idle.empty()) {
    loan.control = idle.back().memory;
    loan.control_at = idle.back().at;
    idle.pop_back();
  } else {
    Status why;
    loan.control =
        static_cast<std::byte*>(heap_.Allocate(loan.control_bytes, /*zeroed=*/false, &why));
    if (loan.control == nullptr) return why;
    loan.control_at = *heap_.Locate(loan.control, loan.control_bytes);
  }
  std::memset(loan.control, 0, loan.control_bytes);
  return loan;
}

Result<Location> Lending::Stage(Loan* loan, const void* source, size_t bytes) {
  Status why;
  void* copy = heap_.Allocate(bytes, /*zeroed=*/false, &why);
  if (copy == nullptr) return why;
  std::memcpy(copy, source, bytes);
  loan->staging = copy;
  return *heap_.Locate(copy, bytes);
}

void Lending::FreeCopy(Loan* loan) {
  if (loan->staging != nullptr) heap_.Free(loan->staging);
  loan->staging = nullptr;
}

void Lending::TakeBack(Loan* loan) {
  FreeCopy(loan);
  if (loan->control != nullptr) {
    idle_[loan->control_bytes].push_back({loan->control, loan->control_at});
  }
  *loan = {};
}

void Lending::TakeBackWhenLeft(Loan* loan, uint32_t self) {
  if (loan->control == nullptr) return;
  if (loan->LeftByAllBut(self)) return TakeBack(loan);
  waiting_.push_back({*loan, self});
  *loan = {};
}

void Lending::CollectWaiting() {
  std::erase_if(waiting_, [this](Waiting& waiting) {
    if (!waiting.loan.LeftByAllBut(waiting.self)) return false;
    TakeBack(&waiting.loan);
    return true;
  });
}

}  // namespace hvd
