// hvdrun_texts KIND: prints one of the texts generated from the settings table. Used by the build;
// not installed.
#include <cstdio>
#include <string>
#include <string_view>

#include "configs/failure_codes.h"
#include "configs/reference_text.h"
#include "configs/settings_table.h"

int main(int argc, char** argv) {
  std::string_view kind = argc == 2 ? argv[1] : "";
  std::string text;
  if (kind == "man") text = hvd::ManPage(hvd::SettingRows());
  if (kind == "bash") text = hvd::BashCompletion(hvd::SettingRows());
  if (kind == "zsh") text = hvd::ZshCompletion(hvd::SettingRows());
  if (kind == "fish") text = hvd::FishCompletion(hvd::SettingRows());
  if (kind == "settings") text = hvd::SettingsPage(hvd::SettingRows(), hvd::HorovodSettings());
  if (kind == "words") text = hvd::LauncherWordsPage();
  if (kind == "failures") text = hvd::FailureCodesPage();
  if (text.empty()) {
    std::fputs("usage: hvdrun_texts man|bash|zsh|fish|settings|words|failures\n", stderr);
    return 2;
  }
  return std::fwrite(text.data(), 1, text.size(), stdout) == text.size() ? 0 : 1;
}
