#include "discovery/ssh_config_choices.h"

#include <algorithm>

#include "discovery/name_pattern.h"
#include "discovery/words.h"

namespace hvd {
namespace {

constexpr int kMostIncludes = 16;  // nested, as in ssh

bool IsUpper(char c) { return c >= 'A' && c <= 'Z'; }

// ssh converts other names to lower case or interprets them.
bool IsPlain(const std::string& name) {
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '-' || c == '_';
  };
  return !name.empty() && std::ranges::all_of(name, plain);
}

// `Keyword value`, `Keyword = value` and `Keyword=value` are the same to ssh.
std::vector<std::string> WordsOfLine(std::string_view line) {
  std::string text(Trimmed(line));
  const size_t blank = text.find_first_of(" \t=");
  if (blank != std::string::npos) {
    const size_t value = text.find_first_not_of(" \t", blank);
    if (value != std::string::npos && text[value] == '=') text[value] = ' ';
  }
  std::vector<std::string> words;
  for (std::string_view word : Words(text)) words.emplace_back(word);
  return words;
}

}  // namespace

void SshConfigChoices::Read(std::string_view text, const Include& include, int depth) {
  if (depth > kMostIncludes) unclear_ = true;
  if (unclear_) return;
  in_block_ = false;
  LineReader lines(text);
  while (const std::optional<std::string_view> line = lines.Next()) {
    std::vector<std::string> words = WordsOfLine(*line);
    if (words.empty() || words[0].starts_with('#')) continue;
    const std::string keyword = Lowered(words[0]);
    words.erase(words.begin());
    const bool quoted = line->find_first_of("\"'\\") != std::string_view::npos;
    unclear_ |= keyword.find_first_of("\"'\\") != std::string::npos;
    if (keyword == "host") {
      unclear_ |= quoted || line->find('#') != std::string_view::npos ||
                  std::ranges::any_of(words, [](const std::string& pattern) {
                    return std::ranges::any_of(pattern, IsUpper);
                  });
      blocks_.push_back({std::move(words)});
      in_block_ = true;
    } else if (keyword == "include") {
      unclear_ |= quoted;
      ReadIncludes(words, include, depth);
    } else if (keyword == "hostname") {
      if (in_block_) blocks_.back().names_host = true;
      unclear_ |= !in_block_;
    } else if (keyword == "match" || keyword == "tag" || keyword.starts_with("canonical")) {
      unclear_ = true;
    }
  }
}

// Inside a block they apply to its hosts only, which this class does not track.
void SshConfigChoices::ReadIncludes(const std::vector<std::string>& words, const Include& include,
                                    int depth) {
  for (const std::string& word : words) {
    const std::optional<std::vector<std::string>> texts = include(word);
    unclear_ |= !texts || (in_block_ && !texts->empty());
    if (unclear_) return;
    for (const std::string& text : *texts) Read(text, include, depth + 1);
    if (!texts->empty()) in_block_ = false;
  }
}

std::optional<std::string> SshConfigChoices::KeyOf(const std::string& host) const {
  if (unclear_ || !IsPlain(host)) return std::nullopt;
  std::string key;
  for (const Block& block : blocks_) {
    const std::vector<std::string_view> patterns(block.patterns.begin(), block.patterns.end());
    const bool matches = MatchesPatterns(patterns, host);
    if (matches && block.names_host) return std::nullopt;
    key += matches ? '1' : '0';
  }
  return key;
}

std::optional<std::string> SshAnswerFor(const std::string& name, const std::string& other,
                                        std::string_view answer) {
  std::string result;
  LineReader lines(answer);
  while (const std::optional<std::string_view> line = lines.Next()) {
    std::string_view value = *line;
    const std::string_view keyword = PopWord(value);
    const bool names_host = keyword == "host" || keyword == "hostname";
    if (names_host ? Trimmed(value) != other : value.find(other) != std::string_view::npos) {
      return std::nullopt;
    }
    result += names_host ? std::string(keyword) + " " + name : std::string(*line);
    result += '\n';
  }
  return result;
}

}  // namespace hvd
