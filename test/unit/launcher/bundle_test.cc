// The bundle, as far as it is pure: the ids read from programs, the script's input and its words.
#include "launcher/channels/bundle/bundle.h"

#include <elf.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "launcher/channels/bundle/bundle_source.h"
#include "launcher/channels/bundle/remote_script.h"

namespace hvd {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;

template <typename T>
std::string BytesOf(const T& value) {
  return std::string(reinterpret_cast<const char*>(&value), sizeof value);
}

// A program of one segment that holds a note of somebody else's and the build id 00010203, and
// symbols behind it.
std::string Program(uint64_t segment_bytes = 200) {
  std::string notes = BytesOf(Elf64_Nhdr{4, 5, NT_GNU_ABI_TAG}) + std::string("GNU\0", 4) +
                      std::string(8, 'x') + BytesOf(Elf64_Nhdr{4, 4, NT_GNU_BUILD_ID}) +
                      std::string("GNU\0\0\1\2\3", 8);
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_phoff = sizeof header;
  header.e_phentsize = sizeof(Elf64_Phdr);
  header.e_phnum = 2;
  header.e_shoff = 400;
  header.e_shnum = 7;
  const uint64_t at = sizeof header + 2 * sizeof(Elf64_Phdr);
  Elf64_Phdr load{}, note{};
  load.p_type = PT_LOAD;
  load.p_filesz = at + segment_bytes;
  note.p_type = PT_NOTE;
  note.p_offset = at;
  note.p_filesz = notes.size();
  std::string file = BytesOf(header) + BytesOf(load) + BytesOf(note) + notes;
  file.resize(at + 200, 'c');
  return file + "symbols, sections";
}

TEST(ElfFile, KnowsTheNameThatItsLinkerGave) {
  Result<std::string> build_id = ElfBuildId(Program());
  ASSERT_TRUE(build_id.ok()) << build_id.status().message();
  EXPECT_EQ(*build_id, "00010203");
}

TEST(ElfFile, RefusesWhatIsCutOffWhereverThatIs) {
  const std::string program =
      Program().substr(0, Program().size() - std::strlen("symbols, sections"));
  EXPECT_TRUE(ElfBuildId(program).ok()) << "stripped";
  for (size_t size = 0; size < program.size(); ++size)
    EXPECT_FALSE(ElfBuildId(program.substr(0, size)).ok()) << size;
  EXPECT_FALSE(ElfBuildId(Program(~uint64_t{0} - 1000)).ok()) << "sums must not overflow";
  EXPECT_FALSE(ElfBuildId("#!/bin/sh\n" + std::string(1000, 'x')).ok());
}

TEST(ElfFile, TrustsNoByte) {
  const std::string program = Program();
  for (size_t i = 0; i < program.size(); ++i) {
    std::string changed = program;
    changed[i] = static_cast<char>(0xff);
    Result<std::string> build_id = ElfBuildId(changed);
    if (!build_id.ok()) continue;
    EXPECT_LE(build_id->size(), 2 * program.size()) << i;
  }
}

TEST(Sha256Hex, IsWhatSha256sumPrints) {
  EXPECT_EQ(Sha256Hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(RemoteAgentCommand, IsOneShortLineForAnyShell) {
  RemoteAgent agent{"/opt/hvdrun/bin/hvdrun", "0123456789abcdef", "0.1.0", std::string(32, 'b'),
                    "x86_64"};
  std::string command = RemoteAgentCommand(agent);
  EXPECT_LT(command.size(), 6144u);
  EXPECT_THAT(command, HasSubstr(" '0123456789abcdef' '0.1.0' "));
  EXPECT_TRUE(command.ends_with(" 'x86_64' 'auto'"));
  EXPECT_EQ(command.find('\n'), std::string::npos) << "csh takes none inside quotes";
  EXPECT_EQ(command.find('!'), std::string::npos) << "csh looks for a former command";
  EXPECT_EQ(command.find('\\'), std::string::npos) << "fish reads it otherwise";
}

TEST(ScriptWords, AreRead) {
  EXPECT_EQ(ParseScriptWants("wants gzip")->packing, Packing::kGzip);
  EXPECT_EQ(ParseScriptWants("wants tar")->packing, Packing::kTar);
  EXPECT_FALSE(ParseScriptWants("wants zip"));
  EXPECT_FALSE(ParseScriptWants("cannot tar"));
  EXPECT_EQ(ParseScriptCannot("cannot do \x1b[2J"), "do \\x1b[2J") << "made safe to print";
  EXPECT_FALSE(ParseScriptCannot("wants gzip"));
  EXPECT_EQ(ParseScriptSkips("skips /p\x1b, because"), "hvdrun does not run /p\\x1b, because");
  EXPECT_FALSE(ParseScriptSkips("wants gzip"));
}

TEST(BundleFeed, SaysNowAndThenThatItMoves) {
  auto bundle = std::make_shared<const Bundle>(Bundle{"0123456789", "cafe"});
  BundleFeed feed;
  EXPECT_EQ(feed.Outgoing(), "") << "it is not made yet";
  TimePoint now{std::chrono::hours(1)};
  feed.Begin(bundle);
  EXPECT_FALSE(feed.Moved(now));
  std::string sent;
  while (!feed.Outgoing().empty()) {
    sent += feed.Outgoing().substr(0, 3);
    feed.Consume(std::min<size_t>(feed.Outgoing().size(), 3));
  }
  EXPECT_EQ(sent, "\nhvdrun-bundle 10 cafe\n0123456789");
  EXPECT_TRUE(feed.Moved(now));
  EXPECT_FALSE(feed.Moved(now + BundleFeed::kReportEvery)) << "nothing more was sent";
  feed.Begin(bundle);
  feed.Consume(1);
  EXPECT_FALSE(feed.Moved(now + milliseconds(1))) << "too soon";
  EXPECT_TRUE(feed.Moved(now + BundleFeed::kReportEvery));
}

}  // namespace
}  // namespace hvd
