// Reader of sound index files of Kafka: prints each answer that differs from sound.tsv.
use std::{collections::HashMap, env, fs, path::Path, process::exit};

fn long(bytes: &[u8]) -> i64 {
    i64::from_be_bytes(bytes[..8].try_into().unwrap())
}

fn int(bytes: &[u8]) -> i64 {
    i32::from_be_bytes(bytes[..4].try_into().unwrap()).into()
}

fn answer(kind: &str, data: &[u8], base: i64, query: &str, numbers: &[i64]) -> Vec<i64> {
    let size = HashMap::from([("offset", 8), ("time", 12), ("transaction", 34)])[kind];
    let entry = |e: &[u8]| match kind {
        "offset" => vec![base + int(e), int(&e[4..])],
        "time" => vec![long(e), base + int(&e[8..])],
        _ => e[2..].chunks(8).map(long).collect(),
    };
    let rows: Vec<Vec<i64>> = data.chunks(size).map(entry).collect();
    match query {
        "entry" => rows[numbers[0] as usize].clone(),
        "lookup" => match rows.partition_point(|row| row[0] <= numbers[0]) {
            0 if kind == "offset" => vec![base, 0],
            0 => vec![-1, base],
            above => rows[above - 1].clone(),
        },
        "fetch_upper_bound" => {
            let bound = rows.partition_point(|row| row[1] < numbers[1] + numbers[2]);
            rows.get(bound).cloned().unwrap_or_default()
        }
        _ => {
            let is_asked = |row: &Vec<i64>| row[2] >= numbers[0] && row[1] < numbers[1];
            rows.into_iter().filter(is_asked).flatten().collect()
        }
    }
}

fn main() {
    let word = env::args().nth(1).unwrap();
    let root = Path::new(&word);
    let numbers = |words: &str| -> Vec<i64> {
        words
            .split_whitespace()
            .map(|n| n.parse().unwrap())
            .collect()
    };
    let table = fs::read_to_string(root.join("sound.tsv")).unwrap();
    let mut wrong = 0;
    for line in table.lines() {
        let columns: Vec<_> = line.split('\t').collect();
        let [kind, path, base, query, words, expected] = columns.try_into().unwrap();
        let data = fs::read(root.join(path)).unwrap();
        let mine = answer(kind, &data, base.parse().unwrap(), query, &numbers(words));
        if mine != numbers(expected) {
            wrong += 1;
            println!("{path}: {query} {words}: {mine:?} instead of {expected}");
        }
    }
    println!("{} queries, {wrong} wrong", table.lines().count());
    exit(i32::from(wrong > 0));
}
