// The end of a sentence that ends with words of somebody else, mostly a piece of advice.
#ifndef HVD_LAUNCHER_OUTPUT_TEXT_SENTENCE_END_H_
#define HVD_LAUNCHER_OUTPUT_TEXT_SENTENCE_END_H_

#include <string>

namespace hvd {

// The text with a full stop, unless it ends with a question mark or a full stop already. Pure.
inline std::string WithStop(std::string text) {
  return text.ends_with('?') || text.ends_with('.') ? text : text + ".";
}

}  // namespace hvd

#endif  // HVD_LAUNCHER_OUTPUT_TEXT_SENTENCE_END_H_
