#include "launcher/output/text/prefix.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "configs/message_text.h"

namespace hvd {
namespace {

constexpr std::pair<std::string_view, PrefixTemplate::Field> kFields[] = {
    {"rank", PrefixTemplate::Field::kRank}, {"local_rank", PrefixTemplate::Field::kLocalRank},
    {"host", PrefixTemplate::Field::kHost}, {"stream", PrefixTemplate::Field::kStream},
    {"time", PrefixTemplate::Field::kTime},
};
constexpr const char* kAllFields = "{rank}, {local_rank}, {host}, {stream} and {time}";

std::optional<PrefixTemplate::Field> FieldNamed(std::string_view name) {
  for (const auto& [known, field] : kFields) {
    if (known == name) return field;
  }
  return std::nullopt;
}

Status Wrong(std::string_view text, const std::string& why) {
  return InvalidArgument("--prefix " + Quoted(text) + ": " + why);
}

bool IsControl(char c) { return static_cast<unsigned char>(c) < ' ' || c == 0x7f; }

}  // namespace

Result<PrefixTemplate> PrefixTemplate::Parse(std::string_view text) {
  if (std::any_of(text.begin(), text.end(), IsControl))
    return Wrong(text, "a prefix holds no control characters; --color colours it");
  PrefixTemplate made;
  std::string plain;
  for (size_t at = 0; at < text.size(); ++at) {
    char c = text[at];
    bool doubled = at + 1 < text.size() && text[at + 1] == c;
    if (c != '{' && c != '}') {
      plain += c;
    } else if (doubled) {
      plain += c;
      ++at;
    } else {
      size_t close = text.find('}', at);
      if (c == '}' || close == std::string_view::npos)
        return Wrong(text, std::string("a '") + c + "' without its partner; write " + c + c +
                               " for the character itself");
      std::string_view name = text.substr(at + 1, close - at - 1);
      std::optional<Field> field = FieldNamed(name);
      if (!field) return Wrong(text, Quoted(name) + " is no field; there are " + kAllFields);
      made.parts_.push_back({Field::kText, std::exchange(plain, {})});
      made.parts_.push_back({*field, {}});
      at = close;
    }
  }
  made.parts_.push_back({Field::kText, std::move(plain)});
  return made;
}

PrefixTemplate PrefixTemplate::Default() {
  PrefixTemplate made;
  made.parts_ = {{Field::kText, "["},
                 {Field::kRank, {}},
                 {Field::kText, "]<"},
                 {Field::kStream, {}},
                 {Field::kText, ">:"}};
  return made;
}

bool PrefixTemplate::Has(Field field) const {
  return std::any_of(parts_.begin(), parts_.end(), [&](const Part& p) { return p.field == field; });
}

}  // namespace hvd
