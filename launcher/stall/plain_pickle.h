// PlainPickle: parses a pickle from an untrusted process into plain values only: none, bool, int,
// float, text, list and dict. Any opcode that would import, call or construct something is an
// error, and so are too many values. Pure.
//
// A pickled list may contain itself: descend to a fixed depth only.
#ifndef HVD_LAUNCHER_STALL_PLAIN_PICKLE_H_
#define HVD_LAUNCHER_STALL_PLAIN_PICKLE_H_

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/base/status.h"

namespace hvd {

class PlainPickle {
 public:
  static constexpr size_t kMostValues = size_t{1} << 20;
  static constexpr size_t kMostItems = size_t{1} << 22;

  enum class Kind : uint8_t { kNone, kBool, kInt, kFloat, kText, kList, kDict };
  struct Value {
    Kind kind = Kind::kNone;
    int64_t number = 0;  // of kBool and kInt
    double real = 0;
    std::string_view text;        // in the bytes that were parsed
    std::vector<uint32_t> items;  // of a list (or tuple); of a dict: key, value, key, value ...
  };

  // The values refer to `bytes`. kInvalidArgument also for a truncated pickle.
  static Result<PlainPickle> Parse(std::string_view bytes);

  const Value& root() const { return values_[root_]; }
  // Index 0 is the none value.
  const Value& At(uint32_t index) const { return values_[index]; }
  // The value of a key; none if it is absent or `dict` is not a dict.
  const Value& Get(const Value& dict, std::string_view key) const;

 private:
  friend class PickleMachine;

  std::vector<Value> values_{Value{}};  // the first is none
  uint32_t root_ = 0;
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_STALL_PLAIN_PICKLE_H_
