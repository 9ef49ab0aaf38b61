// Parses numbers in external text: settings, variables, files, messages. Pure.
#ifndef HVD_RUNTIME_BASE_TEXT_NUMBER_TEXT_H_
#define HVD_RUNTIME_BASE_TEXT_NUMBER_TEXT_H_

#include <charconv>
#include <concepts>
#include <optional>
#include <string_view>
#include <system_error>

namespace hvd {

// Parses the whole text as a number with std::from_chars: no blanks, no '+', no base prefix.
// nullopt if the text is empty, contains anything else or does not fit T.
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
