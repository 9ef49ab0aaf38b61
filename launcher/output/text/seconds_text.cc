#include "launcher/output/text/seconds_text.h"

namespace hvd {

std::string SecondsText(Duration duration) {
  auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(duration);
  if (ms >= std::chrono::seconds(1)) ms = (ms + std::chrono::milliseconds(50)) / 100 * 100;
  std::string number = std::to_string(static_cast<double>(ms.count()) / 1e3);
  number.erase(number.find_last_not_of('0') + 1);
  if (number.ends_with('.')) number.pop_back();
  return number + " s";
}

}  // namespace hvd
