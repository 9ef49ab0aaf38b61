#include "configs/argv_normaliser.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "configs/launcher_words.h"
#include "configs/message_text.h"

namespace hvd {
namespace {

// The row that a flag on the command line refers to.
struct Meaning {
  std::string_view flag;
  const Row* row = nullptr;
};

std::vector<Meaning> AllFlags(std::span<const Row> rows) {
  std::vector<Meaning> all;
  for (const Row& row : rows) {
    for (std::string_view flag : row.flags) all.push_back({.flag = flag, .row = &row});
  }
  return all;
}

bool SameMeaning(const Meaning& a, const Meaning& b) {
  bool same_polarity = a.flag.starts_with("--no-") == b.flag.starts_with("--no-");
  return a.row == b.row && same_polarity;
}

bool IsOption(std::string_view token) { return token.size() > 1 && token.front() == '-'; }

bool TakesValue(const Row& row) { return WordsAfter(row) > 0; }

// Reads tokens one by one; one object per command line.
class Normaliser {
 public:
  Normaliser(std::span<const std::string> args, std::span<const Row> rows)
      : args_(args), flags_(AllFlags(rows)) {}

  Result<NormalisedArgv> Run() {
    while (next_ < args_.size() && IsOption(args_[next_]) && args_[next_] != "--") {
      HVD_RETURN_IF_ERROR(ReadOption(args_[next_++]));
      if (AsksAlone(*out_.options.back().row)) {
        // The section of which --help is requested.
        if (next_ < args_.size() && !IsOption(args_[next_])) out_.command = {args_[next_]};
        return std::move(out_);
      }
    }
    if (next_ < args_.size() && args_[next_] == "--") ++next_;
    out_.command.assign(args_.begin() + static_cast<std::ptrdiff_t>(next_), args_.end());
    return std::move(out_);
  }

 private:
  static bool AsksAlone(const Row& row) {
    const Action* action = std::get_if<Action>(&row.target);
    return action != nullptr && EndsReading(*action);
  }

  Status ReadOption(std::string_view token) {
    size_t equals = token.find('=');
    std::string_view typed = token.substr(0, equals);
    Result<Meaning> meaning = Find(typed);
    if (!meaning.ok()) return meaning.status();
    const Row& row = *meaning->row;
    GivenOption option{.row = &row, .typed = std::string(typed), .value = std::nullopt};
    if (TakesValue(row)) {
      bool inline_value = equals != std::string_view::npos;
      Result<std::string> value =
          inline_value ? std::string(token.substr(equals + 1)) : NextWords(row, typed);
      if (!value.ok()) return value.status();
      if (value->empty() && !row.may_be_empty)
        return NeedsValue(row, typed, "an empty text is none");
      option.value = std::move(*value);
    } else if (equals != std::string_view::npos && !row.foreign) {
      if (const LauncherWord* word = FindLauncherWord(std::string(typed) + "=TYPE"))
        return InvalidArgument(RefusalOf(*word, token));
      return InvalidArgument(Printable(typed) + " takes no value, but " +
                             Quoted(token.substr(equals + 1)) + " was given: write " +
                             std::string(meaning->flag) + " alone");
    } else if (row.type == Type::kBool) {
      option.value = meaning->flag.starts_with("--no-") ? "off" : "on";
    }
    out_.options.push_back(std::move(option));
    return Status::Ok();
  }

  // All values that follow the flag, separated by blanks.
  Result<std::string> NextWords(const Row& row, std::string_view typed) {
    Result<std::string> value = NextAsValue(row, typed);
    for (int more = WordsAfter(row) - 1; more > 0 && value.ok(); --more) {
      Result<std::string> next = NextAsValue(row, typed);
      if (!next.ok()) return next;
      *value += " " + *next;
    }
    return value;
  }

  Result<std::string> NextAsValue(const Row& row, std::string_view typed) {
    if (next_ == args_.size()) return NeedsValue(row, typed, "nothing follows it");
    const std::string& token = args_[next_];
    if (token == "--" || IsExactFlag(token)) {
      return NeedsValue(row, typed, Quoted(token) + " follows it");
    }
    ++next_;
    return token;
  }

  bool IsExactFlag(std::string_view token) const {
    return std::any_of(flags_.begin(), flags_.end(), [&](const Meaning& m) {
      return m.flag == token.substr(0, token.find('='));
    });
  }

  std::optional<Meaning> Exactly(std::string_view flag) const {
    const auto found = std::ranges::find(flags_, flag, &Meaning::flag);
    return found == flags_.end() ? std::nullopt : std::optional(*found);
  }

  // An option in full, of hvdrun or of another launcher, in any spelling.
  Result<std::optional<Meaning>> FindWord(std::string_view typed) const {
    if (std::optional<Meaning> meaning = Exactly(typed)) return meaning;
    if (const LauncherWord* word = FindLauncherWord(typed)) {
      if (word->meaning == WordMeaning::kAlias) return Exactly(word->text);
      if (std::optional<Meaning> meaning = Exactly(word->word)) return meaning;
      return InvalidArgument(RefusalOf(*word, Printable(typed)));
    }
    return Exactly(LongSpelling(typed));
  }

  Result<Meaning> Find(std::string_view typed) const {
    const Result<std::optional<Meaning>> whole = FindWord(typed);
    if (!whole.ok()) return whole.status();
    if (*whole) return **whole;
    std::vector<Meaning> matches;
    for (const Meaning& meaning : flags_) {
      bool abbreviated = typed.size() > 2 && typed.starts_with("--") && !meaning.row->foreign &&
                         !meaning.row->hidden && meaning.flag.starts_with(typed);
      if (!abbreviated) continue;
      bool known = std::any_of(matches.begin(), matches.end(),
                               [&](const Meaning& m) { return SameMeaning(m, meaning); });
      if (!known) matches.push_back(meaning);
    }
    if (matches.size() == 1) return matches.front();
    return matches.empty() ? Unknown(typed) : Ambiguous(typed, matches);
  }

  Status Unknown(std::string_view typed) const {
    std::vector<std::string_view> candidates;
    for (const Meaning& meaning : flags_) {
      if (!meaning.row->hidden && !meaning.row->foreign) candidates.push_back(meaning.flag);
    }
    // The number of dashes does not matter here and does not make two options similar.
    const size_t dashes = typed.starts_with("--") ? 2 : 0;
    std::erase_if(candidates,
                  [&](std::string_view flag) { return dashes == 2 && !flag.starts_with("--"); });
    for (std::string_view& flag : candidates) flag.remove_prefix(dashes);
    const std::string_view near = NearestOf(typed.substr(dashes), candidates);
    const std::string nearest =
        near.empty() ? "" : std::string(typed.substr(0, dashes)).append(near);
    std::string hint =
        nearest.empty() ? "hvdrun --help lists all options" : "did you mean " + nearest + "?";
    return InvalidArgument("unknown option " + Quoted(typed) + ": " + hint);
  }

  static Status Ambiguous(std::string_view typed, const std::vector<Meaning>& matches) {
    std::string list;
    for (const Meaning& match : matches) {
      list += (list.empty() ? "" : ", ") + std::string(match.flag);
    }
    return InvalidArgument(Printable(typed) + " can mean several options: write one of " + list +
                           " in full");
  }

  static Status NeedsValue(const Row& row, std::string_view typed, const std::string& but) {
    const std::string_view needs =
        WordsAfter(row) == 2 ? " needs two values, but " : " needs a value, but ";
    return InvalidArgument(std::string(typed) + std::string(needs) + but + ": " +
                           std::string(row.what) + ", for example " + std::string(typed) + " " +
                           std::string(row.example));
  }

  std::span<const std::string> args_;
  std::vector<Meaning> flags_;
  size_t next_ = 0;
  NormalisedArgv out_;
};

}  // namespace

Result<NormalisedArgv> NormaliseArgv(std::span<const std::string> args, std::span<const Row> rows) {
  return Normaliser(args, rows).Run();
}

}  // namespace hvd
