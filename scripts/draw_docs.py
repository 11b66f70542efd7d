#!/usr/bin/env python3
"""Draws the pictures of the documents again: runs the blocks marked <!-- run --> of each page, as the tests do, and
copies every picture that docs/images has.
    scripts/draw_docs.py FOLDER_OF_STIPPLE [PAGE.md...]"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

if len(sys.argv) < 2:
    sys.exit(__doc__)
root = pathlib.Path(__file__).resolve().parent.parent
programs = pathlib.Path(sys.argv[1]).resolve()
pages = [pathlib.Path(page) for page in sys.argv[2:]] or sorted(root.glob("docs/*.md")) + [root / "README.md"]
block = re.compile(r"^<!-- run[^\n]*-->\n```sh\n(.*?)^```$", re.M | re.S)
environment = dict(os.environ, PATH=f"{programs}:{os.environ['PATH']}", STIPPLE_PROGRESS="never")
for page in pages:
    blocks = block.findall(page.read_text())
    if not any(".png" in text for text in blocks):
        continue
    with tempfile.TemporaryDirectory() as folder:
        for name in ("examples", "weights"):
            os.symlink(root / name, f"{folder}/{name}")
        for text in blocks:
            subprocess.run(["bash", "-c", text], cwd=folder, env=environment, stdout=subprocess.DEVNULL, check=False)
        for picture in sorted(pathlib.Path(folder).glob("*.png")):
            shown = root / "docs/images" / picture.name
            if shown.exists() and shown.read_bytes() != picture.read_bytes():
                shutil.copy(picture, shown)
                if shutil.which("pngquant"):  # 256 colours are enough, in a third of the bytes
                    subprocess.run(["pngquant", "--force", "--skip-if-larger", "--ext", ".png", shown], check=False)
                print(f"{page.name}: {picture.name}")
