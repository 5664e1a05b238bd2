"""Words for how rotary positions reach beyond the length a model was trained for, and for norms of q and k."""

from oneblock.words.entry import Entry

SCALINGS: dict[str, Entry] = {
    "Interpolate": Entry(
        (
            "Position interpolation",
            "Squeezes positions, so that a longer text turns no further than those of training.",
        ),
        ("位置内插", "把位置等比压缩，使更长的文本也只转到训练时最长文本的角度。"),
        "R",
        "angle (p / s) θ^(−2i/n)",
        r"\tfrac{p}{s}\,\theta^{-2i/n}",
    ),
    "DynamicBase": Entry(
        ("Growing base", "Beyond the trained length all waves slow down as the text grows, the slowest most."),
        ("动态底数", "超过训练长度后，底数随文本增长而变大：所有波都变慢，最慢的变得最多。"),
        "R",
        "θ′ = θ (s n / L − s + 1)^(d / (d − 2))",
        r"\theta' = \theta \left(\frac{s n}{L} - s + 1\right)^{d/(d-2)}",
    ),
    "Yarn": Entry(
        (
            "Interpolation by wave",
            "Keeps fast waves, slows slow ones, blends between, and sharpens scores to match.",
        ),
        ("分波内插", "快波不变，慢波放慢，中间平滑过渡，并相应锐化注意力分数。"),
        "R",
        "ω′_i = (1 − r_i) ω_i / s + r_i ω_i,  cos and sin times 0.1 ln s + 1",
        r"\omega'_i = (1 - r_i)\,\omega_i / s + r_i\,\omega_i,\quad t = 0.1 \ln s + 1",
    ),
    "Smooth": Entry(
        ("Long waves slowed", "Slows waves longer than the trained context, keeps short ones, and blends between."),
        ("长波放慢", "放慢比训练长度更长的波，短波不变，中间平滑过渡。"),
        "R",
        "ω′_i = (1 − b_i) ω_i / s + b_i ω_i,  b_i = (L / λ_i − low) / (high − low) in [0, 1]",
        r"\omega'_i = (1 - b_i)\,\omega_i / s + b_i\,\omega_i,\quad b_i = \frac{L/\lambda_i - l}{h - l} \in [0, 1]",
    ),
    "LongRope": Entry(
        (
            "Searched factors",
            "Divides each wave by a factor found by search: one set for short texts, one for long.",
        ),
        ("搜索得到的因子", "每个波除以各自由搜索得到的因子：短文本一套，长文本一套。"),
        "R",
        "ω′_i = ω_i / f_i,  f = short if n ≤ L, else long",
        r"\omega'_i = \omega_i / f_i,\quad f = \mathrm{short} \text{ if } n \le L, \text{ else } \mathrm{long}",
    ),
    "Whole": Entry(
        ("Norm over all heads", "Norms all heads of a token's queries, or keys, together instead of head by head."),
        ("跨头归一化", "对一个词元的全部查询头（或键头）一起归一化，而不是逐头进行。"),
        "N",
        "norm(concat(q_1, …, q_h))",
        r"\mathrm{norm}(\mathrm{concat}(q_1, \ldots, q_h))",
    ),
    "qk_norm": Entry(
        ("Norm of q and k", "Norms queries and keys before they meet, so that scores cannot grow without bound."),
        ("q、k 归一化", "查询和键相遇之前先归一化，注意力分数就不会无限变大。"),
        "N",
        "norm(q), norm(k)",
        r"\mathrm{norm}(q),\; \mathrm{norm}(k)",
    ),
    "softcap": Entry(
        ("Soft cap", "Bends large values smoothly toward a limit instead of letting them grow."),
        ("软上限", "让过大的值平滑地趋近一个上限，而不是任其增长。"),
        "cap",
        "c tanh(s / c)",
        r"c \tanh(s / c)",
    ),
}
