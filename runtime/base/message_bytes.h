// MessageBytes: the bytes of a message with headroom in front, so that a layer can add or remove a
// header without moving other bytes (like the headroom of a Linux sk_buff).
#ifndef HVD_RUNTIME_BASE_MESSAGE_BYTES_H_
#define HVD_RUNTIME_BASE_MESSAGE_BYTES_H_

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

namespace hvd {

class MessageBytes {
 public:
  MessageBytes() = default;
  // Without headroom. Implicit: most messages are built as strings.
  MessageBytes(std::string bytes) : storage_(std::move(bytes)) {}  // NOLINT
  MessageBytes(const char* bytes) : storage_(bytes) {}             // NOLINT
  // Empty, with `room` bytes of headroom and capacity for `bytes` to be appended.
  MessageBytes(size_t room, size_t bytes) : begin_(room) {
    storage_.reserve(room + bytes);
    storage_.resize(room);
  }
  MessageBytes(const MessageBytes&) = default;
  MessageBytes& operator=(const MessageBytes&) = default;
  MessageBytes(MessageBytes&& other) noexcept
      : storage_(std::move(other.storage_)), begin_(std::exchange(other.begin_, 0)) {
    other.storage_.clear();
  }
  MessageBytes& operator=(MessageBytes&& other) noexcept {
    storage_ = std::move(other.storage_);
    begin_ = std::exchange(other.begin_, 0);
    other.storage_.clear();
    return *this;
  }

  // Valid until the next change.
  std::string_view view() const { return std::string_view(storage_).substr(begin_); }
  size_t size() const { return storage_.size() - begin_; }
  bool empty() const { return size() == 0; }
  bool operator==(const MessageBytes& other) const { return view() == other.view(); }

  void Append(std::string_view bytes) { storage_.append(bytes); }
  // Prepends. Moves the other bytes only if there is too little headroom.
  void Push(std::string_view head) {
    if (head.size() > begin_) {
      storage_.insert(begin_, head.size() - begin_, '\0');
      begin_ = head.size();
    }
    begin_ -= head.size();
    std::ranges::copy(head, storage_.begin() + static_cast<ptrdiff_t>(begin_));
  }
  // Turns the first `count` bytes (at most size()) into headroom.
  void Pull(size_t count) { begin_ += count; }

 private:
  std::string storage_;
  size_t begin_ = 0;  // offset of the first byte; headroom before it
};

}  // namespace hvd

#endif  // HVD_RUNTIME_BASE_MESSAGE_BYTES_H_
