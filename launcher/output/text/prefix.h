// PrefixTemplate: the prefix of each line on the screen, from --prefix: text with {rank},
// {local_rank}, {host}, {stream} and {time}. Pure.
#ifndef HVD_LAUNCHER_OUTPUT_TEXT_PREFIX_H_
#define HVD_LAUNCHER_OUTPUT_TEXT_PREFIX_H_

#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/status.h"

namespace hvd {

class PrefixTemplate {
 public:
  enum class Field { kText, kRank, kLocalRank, kHost, kStream, kTime };

  // kInvalidArgument with one sentence on the error. "{{" and "}}" are literal braces.
  static Result<PrefixTemplate> Parse(std::string_view text);
  // "[{rank}]<{stream}>:"
  static PrefixTemplate Default();

  bool Has(Field field) const;
  // `value_of(Field)` is the text of each field but kText.
  template <typename ValueOf>
  std::string Text(ValueOf value_of) const {
    std::string text;
    for (const Part& part : parts_)
      text += part.field == Field::kText ? part.text : value_of(part.field);
    return text;
  }

 private:
  struct Part {
    Field field = Field::kText;
    std::string text;
  };

  std::vector<Part> parts_;
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_OUTPUT_TEXT_PREFIX_H_
