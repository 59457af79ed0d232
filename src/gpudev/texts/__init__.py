"""Every sentence that a person reads, in one place: facts in, sentences out.

Code that decides works with facts (`texts.fact`): a key with the names, numbers and times of one case. Code
that shows something asks `texts.sentences` for the words. The words are in `texts.tables`, one module for
each noun. The package needs only the standard library, so every layer can use it.
"""
