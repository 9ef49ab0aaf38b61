#include "launcher/process/command_cure.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "configs/message_text.h"

namespace hvd {
namespace {

constexpr size_t kMaxShownWord = 60;

bool IsName(std::string_view text) {
  const auto is_letter = [](char c) {
    return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  };
  if (text.empty() || !is_letter(text.front())) return false;
  return std::ranges::all_of(text, [&](char c) { return is_letter(c) || (c >= '0' && c <= '9'); });
}

bool IsBuiltin(std::string_view word) {
  constexpr std::array<std::string_view, 12> kBuiltins = {"source", ".",     "cd",    "export",
                                                          "ulimit", "umask", "alias", "set",
                                                          "unset",  "eval",  "exec",  "module"};
  return std::ranges::find(kBuiltins, word) != kBuiltins.end();
}

std::string Joined(const std::vector<std::string>& argv) {
  std::string text;
  for (const std::string& word : argv) text += (text.empty() ? "" : " ") + word;
  return Printable(text, kMaxShownWord);
}

}  // namespace

std::string WhyNoProgram(const std::vector<std::string>& argv) {
  const std::string& word = argv[0];
  if (const std::string_view sign = TypographicSignIn(word); !sign.empty())
    return "has " + std::string(sign) +
           " in it, as word processors and web pages put it; type it again by hand";
  const size_t equals = word.find('=');
  if (equals != std::string::npos && IsName(std::string_view(word).substr(0, equals)))
    return "sets a variable, which only a shell does; put -x " + Printable(word, kMaxShownWord) +
           " before the command, or env in front of it";
  if (word.find_first_of(" \t\n") != std::string::npos)
    return "is a whole command in one word; leave out the quotes around it, or start a shell: sh "
           "-c '...'";
  if (IsBuiltin(word))
    return "is a part of the shell and no program; start a shell: bash -c '" + Joined(argv) +
           " && ...'";
  return "";
}

}  // namespace hvd
