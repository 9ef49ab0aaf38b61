#include "launcher/stall/plain_pickle.h"

#include <bit>
#include <optional>
#include <string>
#include <unordered_map>

#include "runtime/base/text/format.h"

namespace hvd {
namespace {

// The opcodes that build plain values, with the names of Python's pickletools.
enum class Op : uint8_t {
  kMark = '(',
  kStop = '.',
  kFloat = 'G',
  kInt = 'J',
  kInt1 = 'K',
  kInt2 = 'M',
  kNone = 'N',
  kUnicode = 'X',
  kEmptyList = ']',
  kAppend = 'a',
  kDict = 'd',
  kAppends = 'e',
  kGet = 'h',
  kLongGet = 'j',
  kList = 'l',
  kPut = 'q',
  kLongPut = 'r',
  kSetItem = 's',
  kTuple = 't',
  kSetItems = 'u',
  kEmptyTuple = ')',
  kEmptyDict = '}',
  kProto = 0x80,
  kTuple1 = 0x85,
  kTuple2 = 0x86,
  kTuple3 = 0x87,
  kTrue = 0x88,
  kFalse = 0x89,
  kLong1 = 0x8a,
  kShortUnicode = 0x8c,
  kMemoize = 0x94,
  kFrame = 0x95,
};

constexpr uint8_t kNewestProtocol = 5;
constexpr uint32_t kMarkIndex = UINT32_MAX;  // on the stack: no value

}  // namespace

// The stack machine. After an error it only returns it.
class PickleMachine {
 public:
  explicit PickleMachine(std::string_view bytes) : rest_(bytes), size_(bytes.size()) {}

  Result<PlainPickle> Run() {
    while (!stopped_) {
      const std::optional<uint64_t> op = Number(1);
      if (!op) return Wrong("it ends too early");
      if (!Do(static_cast<Op>(*op)))
        return Wrong(Format("the opcode 0x{:02x} is not one of plain values there", *op));
      if (pickle_.values_.size() > PlainPickle::kMostValues || items_ > PlainPickle::kMostItems ||
          stack_.size() > PlainPickle::kMostItems)
        return Wrong("it has too many values");
    }
    return std::move(pickle_);
  }

 private:
  using Value = PlainPickle::Value;
  using Kind = PlainPickle::Kind;

  Status Wrong(const std::string& why) const {
    return InvalidArgument(
        Format("no pickle of plain values: {} (byte {})", why, size_ - rest_.size()));
  }

  bool Do(Op op) {
    switch (op) {
      case Op::kProto: return Protocol();
      case Op::kFrame: return Number(8).has_value();
      case Op::kMark: stack_.push_back(kMarkIndex); return true;
      case Op::kStop: return Stop();
      case Op::kNone: stack_.push_back(0); return true;
      case Op::kTrue: return Push({.kind = Kind::kBool, .number = 1, .text = {}, .items = {}});
      case Op::kFalse: return Push({.kind = Kind::kBool, .text = {}, .items = {}});
      case Op::kFloat: return PushFloat();
      case Op::kInt: return PushInt(4, true);
      case Op::kInt1: return PushInt(1, false);
      case Op::kInt2: return PushInt(2, false);
      case Op::kLong1: return PushLong();
      case Op::kUnicode: return PushText(4);
      case Op::kShortUnicode: return PushText(1);
      case Op::kEmptyList:
      case Op::kEmptyTuple: return Push({.kind = Kind::kList, .text = {}, .items = {}});
      case Op::kEmptyDict: return Push({.kind = Kind::kDict, .text = {}, .items = {}});
      case Op::kTuple1: return PushLast(1);
      case Op::kTuple2: return PushLast(2);
      case Op::kTuple3: return PushLast(3);
      case Op::kTuple:
      case Op::kList: return PushMarked(Kind::kList);
      case Op::kDict: return PushMarked(Kind::kDict);
      case Op::kAppend: return AddTo(Kind::kList, Pop(1));
      case Op::kSetItem: return AddTo(Kind::kDict, Pop(2));
      case Op::kAppends: return AddTo(Kind::kList, PopToMark());
      case Op::kSetItems: return AddTo(Kind::kDict, PopToMark());
      case Op::kPut: return Put(Number(1));
      case Op::kLongPut: return Put(Number(4));
      case Op::kMemoize: return Put(memo_.size());
      case Op::kGet: return Get(Number(1));
      case Op::kLongGet: return Get(Number(4));
    }
    return false;
  }

  // Little-endian.
  std::optional<uint64_t> Number(size_t bytes) {
    if (rest_.size() < bytes) return std::nullopt;
    uint64_t number = 0;
    for (size_t i = bytes; i-- > 0;) number = number << 8 | static_cast<uint8_t>(rest_[i]);
    rest_.remove_prefix(bytes);
    return number;
  }

  static int64_t Signed(uint64_t number, size_t bytes) {
    const size_t unused = 64 - 8 * bytes;
    return bytes == 0 ? 0 : static_cast<int64_t>(number << unused) >> unused;
  }

  bool Protocol() {
    const std::optional<uint64_t> protocol = Number(1);
    return protocol && *protocol <= kNewestProtocol;
  }

  bool Push(Value value) {
    items_ += value.items.size();
    pickle_.values_.push_back(std::move(value));
    stack_.push_back(static_cast<uint32_t>(pickle_.values_.size() - 1));
    return true;
  }

  bool PushInt(size_t bytes, bool is_signed) {
    const std::optional<uint64_t> number = Number(bytes);
    if (!number) return false;
    const int64_t value = is_signed ? Signed(*number, bytes) : static_cast<int64_t>(*number);
    return Push({.kind = Kind::kInt, .number = value, .text = {}, .items = {}});
  }

  bool PushLong() {
    const std::optional<uint64_t> bytes = Number(1);
    return bytes && *bytes <= 8 && PushInt(*bytes, true);
  }

  // The only one that is big-endian.
  bool PushFloat() {
    if (rest_.size() < 8) return false;
    uint64_t bits = 0;
    for (size_t i = 0; i < 8; ++i) bits = bits << 8 | static_cast<uint8_t>(rest_[i]);
    rest_.remove_prefix(8);
    return Push(
        {.kind = Kind::kFloat, .real = std::bit_cast<double>(bits), .text = {}, .items = {}});
  }

  bool PushText(size_t bytes) {
    const std::optional<uint64_t> size = Number(bytes);
    if (!size || *size > rest_.size()) return false;
    const std::string_view text = rest_.substr(0, *size);
    rest_.remove_prefix(*size);
    return Push({.kind = Kind::kText, .text = text, .items = {}});
  }

  using Items = std::optional<std::vector<uint32_t>>;

  Items Pop(size_t count) {
    if (stack_.size() < count) return std::nullopt;
    std::vector<uint32_t> items(stack_.end() - static_cast<std::ptrdiff_t>(count), stack_.end());
    for (uint32_t item : items) {
      if (item == kMarkIndex) return std::nullopt;
    }
    stack_.resize(stack_.size() - count);
    return items;
  }

  Items PopToMark() {
    size_t count = 0;
    while (count < stack_.size() && stack_[stack_.size() - 1 - count] != kMarkIndex) ++count;
    if (count == stack_.size()) return std::nullopt;
    Items items = Pop(count);
    stack_.pop_back();
    return items;
  }

  bool PushLast(size_t count) {
    Items items = Pop(count);
    return items && Push({.kind = Kind::kList, .text = {}, .items = std::move(*items)});
  }

  bool PushMarked(Kind kind) {
    Items items = PopToMark();
    if (!items || (kind == Kind::kDict && items->size() % 2 != 0)) return false;
    return Push({.kind = kind, .text = {}, .items = std::move(*items)});
  }

  bool AddTo(Kind kind, const Items& items) {
    if (!items || stack_.empty() || stack_.back() == kMarkIndex) return false;
    Value& value = pickle_.values_[stack_.back()];
    if (value.kind != kind || (kind == Kind::kDict && items->size() % 2 != 0)) return false;
    items_ += items->size();
    value.items.insert(value.items.end(), items->begin(), items->end());
    return true;
  }

  bool Put(std::optional<uint64_t> name) {
    if (!name || stack_.empty() || stack_.back() == kMarkIndex) return false;
    memo_[*name] = stack_.back();
    return memo_.size() <= PlainPickle::kMostItems;
  }

  bool Get(std::optional<uint64_t> name) {
    const auto found = name ? memo_.find(*name) : memo_.end();
    if (found == memo_.end()) return false;
    stack_.push_back(found->second);
    return true;
  }

  bool Stop() {
    stopped_ = true;
    if (stack_.size() != 1 || stack_.back() == kMarkIndex) return false;
    pickle_.root_ = stack_.back();
    return true;
  }

  std::string_view rest_;
  const size_t size_;
  PlainPickle pickle_;
  std::vector<uint32_t> stack_;
  std::unordered_map<uint64_t, uint32_t> memo_;
  size_t items_ = 0;
  bool stopped_ = false;
};

Result<PlainPickle> PlainPickle::Parse(std::string_view bytes) {
  return PickleMachine(bytes).Run();
}

// Of equal keys the last one counts, as in Python.
const PlainPickle::Value& PlainPickle::Get(const Value& dict, std::string_view key) const {
  if (dict.kind != Kind::kDict) return values_[0];
  for (size_t i = dict.items.size(); i >= 2; i -= 2) {
    const Value& name = values_[dict.items[i - 2]];
    if (name.kind == Kind::kText && name.text == key) return values_[dict.items[i - 1]];
  }
  return values_[0];
}

}  // namespace hvd
