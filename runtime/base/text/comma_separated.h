// Lists of numbers for messages. Pure.
#ifndef HVD_RUNTIME_BASE_TEXT_COMMA_SEPARATED_H_
#define HVD_RUNTIME_BASE_TEXT_COMMA_SEPARATED_H_

#include <string>

namespace hvd {

// "0, 1, 5"
template <typename Numbers>
std::string CommaSeparated(const Numbers& numbers) {
  std::string text;
  for (const auto number : numbers) {
    if (!text.empty()) text += ", ";
    text += std::to_string(number);
  }
  return text;
}

}  // namespace hvd

#endif  // HVD_RUNTIME_BASE_TEXT_COMMA_SEPARATED_H_
