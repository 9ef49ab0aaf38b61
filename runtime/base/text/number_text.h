// Numbers in texts of others: settings, variables, files, messages. Pure.
#ifndef HVD_RUNTIME_BASE_TEXT_NUMBER_TEXT_H_
#define HVD_RUNTIME_BASE_TEXT_NUMBER_TEXT_H_

#include <charconv>
#include <concepts>
#include <optional>
#include <string_view>
#include <system_error>

namespace hvd {

// The number that is the whole text, as std::from_chars reads it: no blanks, no '+', no prefix of
// the base. Nothing where the text is empty, has more than a number, or one that T does not hold.
template <std::integral T>
std::optional<T> ParseWhole(std::string_view text, int base = 10) {
  T number{};
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number, base);
  return error == std::errc() && stop == end ? std::optional(number) : std::nullopt;
}
template <std::floating_point T>
std::optional<T> ParseWhole(std::string_view text) {
  T number{};
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  return error == std::errc() && stop == end ? std::optional(number) : std::nullopt;
}

}  // namespace hvd

#endif  // HVD_RUNTIME_BASE_TEXT_NUMBER_TEXT_H_
