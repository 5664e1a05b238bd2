"""Words for the checks of caches."""

CHECKS_OF_CACHES: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "OB501": (
        (
            "Token by token with a cache equals all tokens at once",
            "Keys cached before they are rotated, positions that begin again, a bias of the wrong query, a cache "
            "nobody reads.",
            "candle #899: a relative bias computed for query 0 once a cache is present.",
            "A text is answered at once and token by token, in float64; the first module is named that takes the "
            "same for a "
            "token and gives something else.",
            "Rounding: what shrinks with precision is no fault.",
            "Count positions, masks and biases from the cache's length.",
        ),
        (
            "用缓存逐词元计算等于一次算完",
            "旋转之前就缓存了键、位置重新从 0 开始、偏置取了错误的查询、缓存没有人读。",
            "candle #899：有缓存时相对位置偏置按查询 0 计算。",
            "同一文本一次算完与逐词元计算，float64 比较；指出第一个对同一词元输入相同而输出不同的模块。",
            "舍入误差：随精度提高而缩小的差异不算错误。",
            "位置、掩码和偏置都从缓存长度起算。",
        ),
    ),
    "OB502": (
        (
            "A prompt in parts equals the prompt at once",
            "is_causal=True with fewer queries than keys, which aligns to the first key; a square mask; no mask "
            "with a cache.",
            "meta-llama/llama #899: the second chunk of a prompt; torch #108108: is_causal with fewer queries "
            "than keys.",
            "Parts of 2 and 3, of 1 and of 3 tokens, then the rest; asked only where token by token is right.",
            "Modules that take a single new token only, if they say so by an error of their own: that is "
            "reported as one.",
            "Query i of a part sees keys up to past + i.",
        ),
        (
            "分块输入提示等于一次输入",
            "查询少于键时 is_causal=True 与第一个键对齐；方形掩码；有缓存时不加掩码。",
            "meta-llama/llama #899：提示的第二块；torch #108108：查询少于键时的 is_causal。",
            "先输入 2 和 3 个、1 个、3 个词元，再输入其余；仅在逐词元正确时才问。",
            "只接受单个新词元的模块会报错，并按报错报告。",
            "分块中第 i 个查询可见 past + i 及之前的键。",
        ),
    ),
    "OB503": (
        (
            "A cache that was cut goes on like one that never held more",
            "A layer that is not cut, one token too many, crop(0) that keeps everything.",
            "transformers #47433: crop(0) kept everything, crop(-5) on 3 tokens kept one.",
            "The cache of a text is cut to its beginning, which then goes on otherwise; also to nothing, and "
            "beyond its length.",
            "Caches that cannot be cut, and rolling ones that refuse.",
            "Cut keys, values and counts of every layer.",
        ),
        (
            "裁剪过的缓存与从未多存过的缓存结果相同",
            "有一层没有裁剪、多裁一个词元、crop(0) 保留了全部。",
            "transformers #47433：crop(0) 保留全部，对 3 个词元 crop(-5) 留下一个。",
            "把一段文本的缓存裁到开头，再接上不同的后文；也测裁到零和超过长度。",
            "不能裁剪的缓存，以及拒绝裁剪的滚动缓存。",
            "每一层的键、值和计数都要裁剪。",
        ),
    ),
    "OB504": (
        (
            "A cache whose rows are reordered goes on with the texts of those rows",
            "Beam search that continues other texts than it scores: a layer, or only keys, reordered.",
            "None on record that we know of.",
            "Three texts, rows 2, 0, 0 chosen, then two more tokens: the answer must be that of those texts.",
            "Caches for which nobody says how rows are chosen.",
            "index_select along the batch axis for every tensor of every layer.",
        ),
        (
            "行重排后的缓存接着对应行的文本",
            "束搜索续写的不是它打分的文本：只重排了某一层，或只重排了键。",
            "尚无我们所知的公开记录。",
            "三段文本，取第 2、0、0 行，再输入两个词元：结果应为这些行的文本。",
            "无从得知如何选取行的缓存。",
            "每一层的每个张量都沿批次维 index_select。",
        ),
    ),
    "OB505": (
        (
            "A second text is answered as if it came first",
            "State left in the module or in a default argument, reset() that forgets too little, caches that "
            "share tensors.",
            "transformers #30670: a static cache used again, its stale slots visible.",
            "Two texts one after the other in one module and in fresh ones; reset; an older cache continued "
            "after a newer text.",
            "Caches that are objects may be filled in place.",
            "Make the cache per text, or empty it wholly.",
        ),
        (
            "第二段文本的结果如同最先输入",
            "状态留在模块或默认参数里、reset() 清除不彻底、不同缓存共用张量。",
            "transformers #30670：重复使用静态缓存时旧槽位仍可见。",
            "两段文本先后输入同一模块与全新模块；重置；在新文本之后继续旧缓存。",
            "作为对象的缓存可以原地填充。",
            "每段文本新建缓存，或彻底清空。",
        ),
    ),
    "OB506": (
        (
            "Left-padded rows go on from their own positions",
            "One position for all rows while decoding; the mask forgotten once there is a cache.",
            "unsloth #3699: batched generation was garbage while single prompts were fine.",
            "One row of two begins with padding; with a cache every real token is answered as without, also with "
            "positions given.",
            "A constant shift of rotary positions, the same in every step.",
            "Positions and mask per row, from the mask over past and new tokens.",
        ),
        (
            "左填充的行从各自的位置继续",
            "解码时所有行共用一个位置；有缓存后忘了掩码。",
            "unsloth #3699：批量生成全是乱码，单条提示却正常。",
            "两行中有一行以填充开头；使用缓存时每个真实词元的输出应与不用时相同，给出位置时也一样。",
            "旋转位置的恒定平移，只要每一步相同。",
            "按行从覆盖已缓存与新词元的掩码得出位置和掩码。",
        ),
    ),
    "OB507": (
        (
            "Beyond its window a cache gives what the whole text gives",
            "A single token that sees the whole cache; a prompt longer than the window whose early tokens see "
            "later keys.",
            "nanochat #452: the single-token path; litgpt #2182: a ring buffer written before attention.",
            "Texts of twice the window, token by token, after a prompt longer than the window, and in parts.",
            "Windows wider than 24 tokens are not asked: give a small model.",
            "Band the mask in every step; keep the tail after attention, not before.",
        ),
        (
            "超出窗口后使用缓存的结果与整段文本相同",
            "单个词元看到了整个缓存；提示长于窗口时前面的词元看到后面的键。",
            "nanochat #452：单词元路径；litgpt #2182：先写入再做注意力的环形缓冲区。",
            "两倍窗口长的文本：逐词元、在长于窗口的提示之后、以及分块输入。",
            "宽于 24 个词元的窗口不问：请给一个小模型。",
            "每一步都用带状掩码；先做注意力，再保留末尾。",
        ),
    ),
    "OB508": (
        (
            "Asking for a cache changes no answer",
            "Another path, mask or kernel with use_cache.",
            "None on record that we know of.",
            "The same text with and without use_cache, in float64.",
            "Nothing.",
            "Let the cache only remember.",
        ),
        (
            "要求返回缓存不改变任何输出",
            "使用 use_cache 时走了另一条路径、另一种掩码或内核。",
            "尚无我们所知的公开记录。",
            "同一文本，使用与不使用 use_cache，float64 比较。",
            "无。",
            "缓存只应负责记忆。",
        ),
    ),
}
