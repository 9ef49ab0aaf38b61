#include "timeline/page/page.h"

#include "runtime/base/text/format.h"

namespace hvd {
namespace {

constexpr std::string_view kPlace = "@REPORT@";

// Inside a script, these could end it, or begin an HTML comment or an entity.
std::string ForScript(std::string_view json) {
  std::string text;
  for (char c : json) {
    if (c == '<' || c == '>' || c == '&') {
      text += Format("\\u{:04x}", static_cast<unsigned>(c));
    } else {
      text += c;
    }
  }
  return text;
}

}  // namespace

std::string FillPage(std::string_view page, std::string_view json) {
  std::string text(page);
  return text.replace(text.find(kPlace), kPlace.size(), ForScript(json));
}

}  // namespace hvd
