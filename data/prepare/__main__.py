"""Text or JSON lines to token files: what `longhaul data prepare` runs. Needs Python's standard
library, and `tokenizers` unless the tokenizer is `bytes`.
Exit codes: 0 done, 1 failed, 2 bad input.
"""
import argparse
import json
import os
import signal
import sys
from array import array

sys.dont_write_bytecode = True

from failures import BadInput, Interrupted  # noqa: E402
from inputs import Reader  # noqa: E402
from outputs import open_output, paths_of  # noqa: E402
from progress import Progress  # noqa: E402
from tokenizing import end_of_document, open_tokenizer  # noqa: E402

DONE, FAILED, BAD_INPUT = 0, 1, 2
ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
UINT16_VOCABULARY = 1 << 16
UINT32_VOCABULARY = 2**31 - 1  # beyond: no vocabulary (data/token_source.h)
BATCH_BYTES, BATCH_PIECES = 1 << 20, 4096


def arguments():
    parser = argparse.ArgumentParser(prog="longhaul data prepare")
    parser.add_argument("inputs", nargs="+")
    parser.add_argument("--tokenizer", required=True)
    parser.add_argument("--to", required=True)
    parser.add_argument("--format", choices=("llmc", "megatron", "raw"), default="llmc")
    parser.add_argument("--documents", choices=("files", "lines", "blank"), default="files")
    parser.add_argument("--jsonl-field")
    parser.add_argument("--end-of-document", default="auto")
    parser.add_argument("--width", choices=("auto", "16", "32"), default="auto")
    parser.add_argument("--force", action="store_true")
    parser.add_argument("--output", choices=("text", "json"), default="text")
    return parser.parse_args()


def check_files(args):
    """The inputs' bytes. Nothing is opened for writing before the inputs are there."""
    outputs = paths_of(args.to, args.format)
    total = 0
    for path in args.inputs:
        if os.path.isdir(path):
            raise BadInput(f"{path} is a folder; name its files")
        try:
            total += os.stat(path).st_size
        except OSError as error:
            raise BadInput(f"cannot read {path}: {error.strerror}") from None
        if not os.access(path, os.R_OK):
            raise BadInput(f"cannot read {path}: Permission denied")
        if any(os.path.exists(out) and os.path.samefile(path, out) for out in outputs):
            raise BadInput(f"{path} is both input and output")
    folder = os.path.dirname(args.to) or "."
    if not os.path.isdir(folder):
        raise BadInput(f"folder {folder} does not exist")
    for path in outputs:
        if os.path.isdir(path):
            raise BadInput(f"{path} is a folder; --to names a file")
        if os.path.exists(path) and not args.force:
            raise BadInput(f"{path} exists; --force replaces it")
    return total


def is_wide(width, vocabulary):
    """Whether tokens take 32 bits."""
    if vocabulary > UINT32_VOCABULARY:
        raise BadInput(f"the vocabulary has {vocabulary} tokens, more than {UINT32_VOCABULARY}")
    if width == "16" and vocabulary > UINT16_VOCABULARY:
        raise BadInput(f"--width 16: the vocabulary has {vocabulary} tokens, more than the "
                       f"{UINT16_VOCABULARY} that 16 bits hold")
    return width == "32" or vocabulary > UINT16_VOCABULARY


def batches(reader):
    """Lists of (piece, ends_document), bounded in bytes and number."""
    batch, size = [], 0
    for piece in reader.pieces():
        batch.append(piece)
        size += len(piece[0])
        if size >= BATCH_BYTES or len(batch) >= BATCH_PIECES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def convert(reader, tokenizer, end, output, progress):
    behind = array(output.typecode, [] if end is None else [end])
    for batch in batches(reader):
        encoded = tokenizer.encode([piece for piece, _ in batch], output.typecode)
        for ids, (_, ends) in zip(encoded, batch):
            output.write(ids)
            if ends:
                output.write(behind)
                output.end_document()
        progress.update(reader.position, output.tokens)
    if output.tokens == 0:
        raise BadInput("the input has no text, so there are no tokens")


def counted(number, noun):
    return f"{number} {noun}{'' if number == 1 else 's'}"


def report(args, output, vocabulary, end):
    width = {"H": "uint16", "I": "uint32", "i": "int32"}[output.typecode]
    if args.output == "json":
        print(json.dumps({"files": output.paths, "format": args.format, "tokens": output.tokens,
                          "documents": output.documents, "vocab": vocabulary, "width": width,
                          "end_of_document": end}))
        return
    print(f"{' and '.join(output.paths)}: {counted(output.tokens, 'token')} in "
          f"{counted(output.documents, 'document')}")
    keys = [f"train: {output.paths[0]}", f"tokenizer: {width if args.format == 'raw' else 'auto'}"]
    if end is not None and args.format != "megatron":
        keys.append(f"end_of_document: {end}")
    print(f"in the run's file: model.vocab: {vocabulary} or more, data: {{{', '.join(keys)}}}")


def prepare(args):
    total = check_files(args)
    tokenizer = open_tokenizer(args.tokenizer)
    end = end_of_document(tokenizer, args.end_of_document)
    vocabulary = max(tokenizer.vocabulary, 0 if end is None else end + 1)
    wide = is_wide(args.width, vocabulary)
    reader = Reader(args.inputs, args.jsonl_field, args.documents, tokenizer.decodes)
    progress = Progress(total)
    # A signal waits until the file that is there now would be abandoned for it.
    signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
    output = open_output(args.to, args.format, wide)
    try:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING)
        convert(reader, tokenizer, end, output, progress)
        output.complete()
        # Between the old files and the new ones nothing ends the tool.
        signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
        output.appear()
    except OSError as error:
        output.abandon()
        error.filename = error.filename or args.to
        raise
    except BaseException:
        output.abandon()
        raise
    finally:
        progress.close()
    end_on_signals(f"{' and '.join(output.paths)} were complete")
    signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING)
    report(args, output, vocabulary, end)


def end_on_signals(outcome):
    """From now on a signal ends the tool with these words."""
    def interrupt(number, _):
        raise Interrupted(number, outcome)
    for number in ENDING:
        signal.signal(number, interrupt)


def fail(message, code):
    print(f"longhaul: {message}", file=sys.stderr)
    return code


def main():
    end_on_signals("nothing was written")
    if sys.byteorder != "little":
        return fail("token files are little-endian; this machine is not", FAILED)
    try:
        prepare(arguments())
        sys.stdout.flush()
    except BadInput as error:
        return fail(error, BAD_INPUT)
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        return fail(f"{where}{error.strerror or error}", FAILED)
    except MemoryError:
        return fail("out of memory", FAILED)
    except Interrupted as interrupted:
        print(f"longhaul: interrupted; {interrupted.outcome}", file=sys.stderr)
        signal.signal(interrupted.number, signal.SIG_DFL)
        os.kill(os.getpid(), interrupted.number)
    return DONE


if __name__ == "__main__":
    sys.exit(main())
