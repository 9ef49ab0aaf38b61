#include "launcher/channels/preamble.h"

#include "configs/message_text.h"

namespace hvd {

std::optional<std::string> Preamble::Consume(std::string_view bytes) {
  // The greeting may have begun in earlier bytes.
  size_t from = received_.size() - std::min(received_.size(), greeting_.size());
  received_ += bytes;
  size_t at = received_.find(greeting_, from);
  if (at == std::string::npos) return std::nullopt;
  over_ = true;
  std::string rest = received_.substr(at + greeting_.size());
  received_.clear();
  return rest;
}

std::optional<std::string> Preamble::PopSuffix() {
  if (over_) return std::nullopt;
  const std::string begins = greeting_.substr(0, greeting_.size() - 1) + " ";
  size_t at = received_.find(begins);
  size_t end = at == std::string::npos ? at : received_.find('\n', at);
  if (end == std::string::npos) return std::nullopt;
  std::string suffix = received_.substr(at + begins.size(), end - at - begins.size());
  received_.erase(at, end - at);
  return suffix;
}

std::string Preamble::printed() const {
  std::string_view text = received_;
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.remove_suffix(1);
  size_t line = text.rfind('\n');
  return Printable(line == text.npos ? text : text.substr(line + 1));
}

}  // namespace hvd
