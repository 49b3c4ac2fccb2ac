-- Conditions of one row: comparisons, arithmetic, BETWEEN, IN, NULL, AND/OR/NOT/XOR.
-- table: people

select count(*) from people

select count(*) from people where age > 40

select count(*) from people where age >= 40 and age <= 40

select count(*) from people where age <> 40

select count(*) from people where age != 40 and not age = 41

select count(*) from people where 40 < age

-- A comparison of two columns.
select count(*) from people where age > balance

-- The paper's Example 4.1.
select count(*) from people where score < 3*age

-- The paper's Example 4.2.
select count(*) from people where age*age + balance*balance >= 2000 and balance < age

select count(*) from people where score - age between balance and 2 * balance + 40

select count(*) from people where (score + balance) % 7 = 0

select count(*) from people where balance % 7 = -3

select count(*) from people where -balance > 10

select count(*) from people where - - balance > +10

select count(*) from people where abs(balance) >= 45 or sign(balance) = 0

select count(*) from people where age // 10 = 3

select count(*) from people where age / 10 > 3.5

select count(*) from people where age ** 2 < 400

select count(*) from people where power(age, 2) + sqrt(score) > 900.5

select count(*) from people where greatest(age, score, balance) = age

select count(*) from people where least(age, score) < 20 or greatest(balance, 0) > 49

select count(*) from people where ceil(age / 7) = 5 and floor(score / 10) = 7

select count(*) from people where round(balance / 3, 1) = 3.3

select count(*) from people where ln(age) > 3.5 and exp(balance / 10) < 100 and log10(score) < 1.95

select count(*) from people where (age & 3) = 1 and (score | 1) = score

select count(*) from people where xor(age, 1) > age

select count(*) from people where height < 1.5

select count(*) from people where height between 1.5 and 2.0

select count(*) from people where height * 2 + 1 > 4.2

select count(*) from people where age between 30 and 40

select count(*) from people where age not between 30 and 40

select count(*) from people where balance between -10 and -1

-- Nothing lies between 40 and 30.
select count(*) from people where age between 40 and 30

select count(*) from people where age in (20, 30, 40, 50)

select count(*) from people where age not in (20, 30, 40, 50)

select count(*) from people where nationality in ('Kenya', 'Ghana', 'Nowhere')

select count(*) from people where age in (score - 40, score - 41, balance)

select count(*) from people where (age, score) in ((20, 70), (30, 80), (25, 75))

select count(*) from people where nationality = 'Côte d''Ivoire'

select count(*) from people where nationality > 'J'

select count(*) from people where nationality is null

select count(*) from people where nationality is not null

-- NULL is neither in nor out.
select count(*) from people where nationality not in ('Kenya', 'Ghana')

select count(*) from people where nationality <> 'Kenya'

select count(*) from people where not (nationality = 'Kenya')

select count(*) from people where nationality is distinct from 'Kenya'

select count(*) from people where nationality is not distinct from null

select count(*) from people where nationality = null

select count(*) from people where not (nationality = null)

select count(*) from people where nationality not in ('Kenya', null)

select count(*) from people where nationality in ('Kenya', null)

select count(*) from people where member

select count(*) from people where not member

select count(*) from people where member is true

select count(*) from people where member is not true

select count(*) from people where member is false or member is null

select count(*) from people where member is not false

select count(*) from people where member = "select"

select count(*) from people where member <> "select"

select count(*) from people where member and "select"

select count(*) from people where member or "select"

select count(*) from people where not (member or "select")

select count(*) from people where not (member and "select") and age > 20

select count(*) from people where (member and null) is null

select count(*) from people where (member or null) and age > 20

-- XOR: one of the two, and unknown where one is unknown.
select count(*) from people where (age > 40) XOR (score > 85)

select count(*) from people where (member) xor ("select")

select count(*) from people where not ((member) xor ("select"))

select count(*) from people where ((age > 40) xor (score > 85)) and ((member) xor (balance < 0))

-- duckdb: select count(*) from people where ((age > 40) <> (score > 85)) <> (balance > 0)
select count(*) from people where (age > 40) xor (score > 85) xor (balance > 0)

-- duckdb: select count(*) from people where (age > 40 and member) <> (score > 85 or "select")
select count(*) from people where (age > 40 and member) xor (score > 85 or "select")

-- duckdb: select count(*) from people where (age > 40) <> (score > 85)
select count(*) from people where age > 40 xor score > 85

select count(*) from people where age > 20 and age < 30 or age > 55 and score > 91

select count(*) from people where (age > 20 and (age < 30 or (age > 55 and not (score > 91 or balance < 0))))

select count(*) from people
where not (not (not (age > 30 and not (score < 80 or not (balance > 0 and not member)))))

select count(*) from people where ((((((((((age > 30))))))))))

select count(*) from people where true

select count(*) from people where false

select count(*) from people where null

select count(*) from people where 1 = 1 and 2 > 1

select count(*) from people where age = age

select count(*) from people where "odd name" = "odd name"

select count(*) from people where "odd name" + age > 40

select count(*) from people where "odd name" is null and height is null

select count(*) from people where coalesce("odd name", 0) = 0

select count(*) from people where nullif("odd name", 0) is null

select count(*) from people where ifnull("odd name", age) > 10

-- Neither a division by zero nor a number that is none can be true.
select count(*) from people where age / "odd name" > 3

select count(*) from people where try_cast("größe" as integer) is null

select count(*) from people where cast(age as double) / 7 > 5 and cast(score as varchar) like '9%'

select count(*) from people where age::varchar = '33' or balance::double < -49.5

select count(*) from people where case when age < 20 then score > 70 when age < 40 then member else balance > 0 end

select count(*) from people where case nationality when 'Kenya' then 1 when 'Peru' then 2 else 0 end = 2

select count(*) from people where case when member then 1 end is null

select count(*) from people where if(member, age, score) > 60

select count(*) from people where (case when "odd name" is null then age else "odd name" end) between 5 and 30
